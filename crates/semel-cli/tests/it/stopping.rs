//! A process behind a load balancer that is told to stop, as the real binary.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::Signal;
use semel::metrics::{ALL, MetricKind, Part};
use tempfile::TempDir;
use test_http::blocking::Client;
use test_http::{HANG, Program, Request, Upstream, until_blocking};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::binary::semel;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// Shorter than the two seconds for which the last answer of a connection is waited for.
const AT_ONCE: Duration = Duration::from_millis(1_500);

/// A running process with a place for clients and one where its health is.
struct Stopping {
    program: Program,
    clients: SocketAddr,
    health: SocketAddr,
    _folder: TempDir,
}

impl Stopping {
    fn serve(grace: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let file = folder.path().join("semel.toml");
        std::fs::write(&file, format!("[server.timeouts]\ngrace = '{grace}'\n")).expect("is written");
        let mut command = semel();
        command.env_remove("SEMEL_TOKENS").env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--config"]).arg(&file);
        let mut program = Program::start(&mut command).expect("starts");
        let address = program.listening().expect("listens");
        Self { program, clients: address, health: address, _folder: folder }
    }

    fn proxy(upstream: SocketAddr, grace: &str) -> Self {
        Self::proxy_with(upstream, &format!("grace = '{grace}'"))
    }

    fn proxy_with(upstream: SocketAddr, timeouts: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let file = folder.path().join("semel.toml");
        let config = format!(
            "upstream = 'http://{upstream}'\nlisten = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\nstore = 'memory:'\n\
             [timeouts]\n{timeouts}\n"
        );
        std::fs::write(&file, config).expect("is written");
        let mut command = semel();
        let mut program = Program::start(command.args(["proxy", "--config"]).arg(&file)).expect("starts");
        let clients = program.listening().expect("listens");
        let said = program.err();
        let (_, admin) = said.split_once("the dashboard on http://").expect("it says where its health is");
        let health = admin.lines().next().and_then(|admin| admin.parse().ok()).expect("is an address");
        Self { program, clients, health, _folder: folder }
    }

    fn ready(&self) -> (u16, String) {
        let answer = Client::new(self.health).ask(&Request::get("/readyz")).expect("is answered");
        (answer.status, answer.text().to_owned())
    }

    /// The answer to a request on a connection of its own, and whether it is the last one of that.
    fn answered_on_a_new_connection(&self, path: &str) -> (u16, Option<String>) {
        let answer = Client::new(self.clients).ask(&Request::get(path).header("host", "localhost"));
        let answer = answer.expect("a new connection is taken");
        (answer.status, answer.header("connection").map(str::to_owned))
    }

    /// While it says that it is not ready, everything is served on; then it drains.
    fn serves_on_while_it_is_not_ready(&mut self, path: &str) {
        assert_eq!(self.ready(), (200, "ready\n".to_owned()));
        let asked_at = Instant::now();
        self.program.signal(Signal::TERM);
        self.program.until_written("/readyz fails from now on, new requests are taken for 3s more");
        assert_eq!(self.ready(), (503, "not ready: stopping: send new requests elsewhere\n".to_owned()));
        let (status, connection) = self.answered_on_a_new_connection(path);
        assert!((200..300).contains(&status), "{status}");
        assert_eq!(connection.as_deref(), Some("close"));
        assert!(self.program.is_running());
        self.program.until_written("nothing new is taken");
        assert!(asked_at.elapsed() >= Duration::from_secs(3), "the grace is as long as it is said to be");
        assert!(self.program.wait().success(), "{}", self.program.tail());
        assert!(self.program.err().contains("none was cut off"), "{}", self.program.err());
    }

    /// How long it takes to end, from the signal on, with a client that leaves its connection open.
    fn ends_with_an_idle_connection(&mut self, path: &str) -> Duration {
        let mut idle = TcpStream::connect(self.clients).expect("connects");
        idle.set_read_timeout(Some(PATIENCE)).expect("is set");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        idle.write_all(request.as_bytes()).expect("is written");
        let mut answer = [0; 4096];
        let length = idle.read(&mut answer).expect("is answered");
        assert!(answer[..length].starts_with(b"HTTP/1.1 20"));
        let asked_at = Instant::now();
        self.program.signal(Signal::TERM);
        assert!(self.program.wait().success());
        asked_at.elapsed()
    }
}

/// Takes this many bytes of frames, one by one: the head of a frame says how long it is and what it is.
fn frame(line: &mut TcpStream) -> u8 {
    let mut head = [0; 9];
    line.read_exact(&mut head).expect("a frame comes");
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut rest = vec![0; usize::try_from(length).expect("is short")];
    line.read_exact(&mut rest).expect("all of it comes");
    head[3]
}

/// A client of HTTP/2 that said hello, heard the same, and says nothing more, not even to a ping.
fn silent_http2(address: SocketAddr) -> TcpStream {
    const SETTINGS: u8 = 4;
    let mut line = TcpStream::connect(address).expect("connects");
    line.set_read_timeout(Some(PATIENCE)).expect("is set");
    line.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("is written");
    while frame(&mut line) != SETTINGS {}
    line
}

fn upstream(runtime: &Runtime) -> Upstream {
    runtime.block_on(Upstream::counting(Duration::ZERO))
}

#[test]
fn a_claim_server_serves_on_for_its_grace_while_it_says_that_it_is_not_ready() {
    Stopping::serve("3s").serves_on_while_it_is_not_ready("/openapi.json");
}

#[test]
fn a_proxy_serves_on_for_its_grace_while_it_says_that_it_is_not_ready() {
    let runtime = Runtime::new().expect("a runtime starts");
    let upstream = upstream(&runtime);
    Stopping::proxy(upstream.address, "3s").serves_on_while_it_is_not_ready("/");
}

#[test]
fn a_connection_that_asks_for_nothing_does_not_hold_up_the_end_of_a_claim_server() {
    let took = Stopping::serve("0s").ends_with_an_idle_connection("/healthz");
    assert!(took < AT_ONCE, "{took:?}");
}

#[test]
fn a_connection_that_asks_for_nothing_does_not_hold_up_the_end_of_a_proxy() {
    let runtime = Runtime::new().expect("a runtime starts");
    let upstream = upstream(&runtime);
    let took = Stopping::proxy(upstream.address, "0s").ends_with_an_idle_connection("/");
    assert!(took < AT_ONCE, "{took:?}");
}

#[test]
fn a_silent_connection_of_http2_does_not_hold_up_the_end_of_either() {
    let runtime = Runtime::new().expect("a runtime starts");
    let upstream = upstream(&runtime);
    for mut process in [Stopping::serve("0s"), Stopping::proxy(upstream.address, "0s")] {
        let _silent = silent_http2(process.clients);
        let asked_at = Instant::now();
        process.program.signal(Signal::TERM);
        assert!(process.program.wait().success());
        let took = asked_at.elapsed();
        assert!(took < AT_ONCE, "{took:?}");
    }
}

#[test]
fn a_person_at_the_terminal_does_not_wait_for_the_grace() {
    let mut serving = Stopping::serve("1h");
    serving.program.signal(Signal::INT);
    assert!(serving.program.wait().success());
    assert!(!serving.program.err().contains("fails from now on"), "{}", serving.program.err());
}

#[test]
fn every_request_that_was_answered_before_the_end_has_its_line_in_the_access_log() {
    let runtime = Runtime::new().expect("a runtime starts");
    let upstream = upstream(&runtime);
    let mut proxy = Stopping::proxy(upstream.address, "0s");
    let (clients, (answer, answers)) = (proxy.clients, mpsc::channel());
    // One request after another until the connection ends: the last lines are younger than what is gathered for one write.
    let asking = runtime.spawn(async move {
        let mut client = test_http::Client::connect(clients).await;
        while client.try_ask(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.is_ok() {
            answer.send(()).expect("is counted");
        }
    });
    for _ in 0..20 {
        answers.recv_timeout(PATIENCE).expect("is answered");
    }
    proxy.program.signal(Signal::TERM);
    assert!(proxy.program.wait().success(), "{}", proxy.program.tail());
    runtime.block_on(asking).expect("ends");
    let answered = 20 + answers.iter().count();
    until_blocking("a line for every answer", || {
        let logged = proxy.program.out().lines().filter(|line| line.contains(" GET / ")).count();
        (logged >= answered).then_some(())
    });
}

#[test]
fn a_request_that_is_cut_off_at_the_end_has_its_line_in_the_access_log() {
    const CUT_OFF: usize = 50;
    let runtime = Runtime::new().expect("a runtime starts");
    let upstream = upstream(&runtime);
    let mut proxy = Stopping::proxy_with(upstream.address, "grace = '0s'\ndrain = '200ms'");
    let request = format!("GET {HANG} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut clients = Vec::new();
    for _ in 0..CUT_OFF {
        let mut client = TcpStream::connect(proxy.clients).expect("connects");
        client.write_all(request.as_bytes()).expect("is written");
        clients.push(client);
    }
    until_blocking("the upstream to be asked", || (upstream.connections() == CUT_OFF).then_some(()));
    proxy.program.signal(Signal::TERM);
    assert!(proxy.program.wait().success(), "{}", proxy.program.tail());
    proxy.program.until_written("50 requests cut off");
    until_blocking("a line for every request", || {
        let logged = proxy.program.out().lines().filter(|line| line.contains(" - gone ")).count();
        (logged == CUT_OFF).then_some(())
    });
}

/// Every series of a counter of these parts is there, at 0.
fn counters_start_at_0(process: &Stopping, parts: &[Part]) {
    let scraped = Client::new(process.health).ask(&Request::get("/metrics")).expect("is answered");
    let counters =
        ALL.iter().filter(|metric| metric.kind == MetricKind::Counter && parts.contains(&metric.part));
    let mut count = 0;
    for metric in counters {
        for labels in metric.series() {
            let labels: Vec<_> =
                labels.iter().map(|label| format!("{}=\"{}\"", label.key(), label.value())).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let line = format!("{}{labels} 0", metric.name);
            assert!(scraped.text().lines().any(|found| found == line), "{line}: {}", scraped.text());
            count += 1;
        }
    }
    assert!(count >= 10, "{count}");
}

#[test]
fn every_counter_of_a_fresh_claim_server_is_there_at_0() {
    counters_start_at_0(&Stopping::serve("0s"), &[Part::Engine, Part::Listener, Part::Monitoring]);
}

#[test]
fn every_counter_of_a_fresh_proxy_is_there_at_0() {
    let runtime = Runtime::new().expect("a runtime starts");
    let upstream = upstream(&runtime);
    let parts = [Part::Engine, Part::Listener, Part::Proxy, Part::Monitoring];
    counters_start_at_0(&Stopping::proxy(upstream.address, "0s"), &parts);
}
