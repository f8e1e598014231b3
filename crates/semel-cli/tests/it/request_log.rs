//! What `semel proxy` and `semel serve` write about requests: the access log, request ids, and the times of all lines.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_http::blocking::Client;
use test_http::{Program, Request, Role, Token, Upstream, until_blocking};
use tokio::runtime::Runtime;

use crate::binary::{ran, semel};

/// A running process with an access log in JSON.
struct Logging {
    program: Program,
    address: SocketAddr,
    folder: TempDir,
}

impl Logging {
    /// A proxy before this address, on a file store, with more at the top of its file.
    fn proxy(upstream: SocketAddr, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let store = folder.path().join("store");
        let config = format!(
            "upstream = 'http://{upstream}'\nlisten = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\naccess_log = 'json'\n\
             store = 'file:{}'\n{more}\n",
            store.display()
        );
        Self::start("proxy", folder, &config)
    }

    fn serve(more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let config =
            format!("store = 'memory:'\n[server]\nlisten = '127.0.0.1:0'\naccess_log = 'json'\n{more}\n");
        Self::start("serve", folder, &config)
    }

    fn start(command: &str, folder: TempDir, config: &str) -> Self {
        let file = folder.path().join("semel.toml");
        std::fs::write(&file, config).expect("is written");
        let mut binary = semel();
        binary.env_remove("SEMEL_TOKENS").env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
        let mut program = Program::start(binary.args([command, "--config"]).arg(&file)).expect("starts");
        let address = program.listening().expect("listens");
        Self { program, address, folder }
    }

    fn ask(&self, request: &Request) -> u16 {
        Client::new(self.address)
            .ask(&request.clone().header("host", "localhost"))
            .expect("is answered")
            .status
    }

    /// The first line of the access log with this value, once it is there.
    fn line(&self, member: &str, value: &str) -> Value {
        until_blocking(value, || self.lines().into_iter().find(|line| line[member] == value))
    }

    fn lines(&self) -> Vec<Value> {
        let out = self.program.out();
        out.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect()
    }

    /// Where health and the dashboard of a proxy are.
    fn admin(&self) -> SocketAddr {
        let said = self.program.err();
        let (_, admin) = said.split_once("the dashboard on http://").expect("it says where");
        admin.lines().next().and_then(|admin| admin.parse().ok()).expect("is an address")
    }

    fn stop(&mut self) {
        self.program.signal(Signal::INT);
        assert!(self.program.wait().success(), "{}", self.program.tail());
    }
}

fn upstream() -> (Runtime, Upstream) {
    let runtime = Runtime::new().expect("a runtime starts");
    let upstream = runtime.block_on(Upstream::counting(Duration::ZERO));
    (runtime, upstream)
}

fn charge(key: &str) -> Request {
    Request::json("/charges", "{}").key(key).from("alice")
}

#[test]
fn the_id_of_a_request_is_in_the_log_and_that_of_the_first_one_in_the_record() {
    let (_runtime, upstream) = upstream();
    let mut proxy = Logging::proxy(upstream.address, "");
    assert_eq!(proxy.ask(&charge("k1").header("x-request-id", "req-1")), 201);
    assert_eq!(proxy.ask(&charge("k1").header("x-request-id", "req-2")), 201);
    let (first, second) = (proxy.line("request_id", "req-1"), proxy.line("request_id", "req-2"));
    assert_eq!((&first["decision"], &second["decision"]), (&"run".into(), &"replay".into()));
    assert_eq!(first["key"], second["key"], "an id is never part of the identity");
    let key = first["key"].as_str().expect("has a key").to_owned();
    let listed = Client::new(proxy.admin()).get("/v1/records").expect("is answered");
    let record = &listed["records"][0];
    assert_eq!((&record["first_request"], &record["first_event"]), (&"req-1".into(), &Value::Null));
    let id = record["id"].as_str().expect("has an id");
    let page = Client::new(proxy.admin()).ask(&Request::get(&format!("/keys/{id}"))).expect("is answered");
    assert!(page.text().contains("First request</dt>") && page.text().contains("req-1"), "{}", page.text());
    proxy.stop();
    let store = format!("file:{}", proxy.folder.path().join("store").display());
    let shown = ran(semel().env("SEMEL_STORE", store).args(["keys", "show", &key])).fine();
    let line = shown.lines().find(|line| line.contains("first request")).unwrap_or_else(|| panic!("{shown}"));
    assert!(line.ends_with("req-1"), "{line}");
}

#[test]
fn without_a_sane_request_id_the_trace_is_named_and_without_both_nothing_is() {
    let (_runtime, upstream) = upstream();
    let proxy = Logging::proxy(upstream.address, "");
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let traced = format!("00-{trace}-00f067aa0ba902b7-01");
    let too_long = "i".repeat(129);
    assert_eq!(
        proxy.ask(&charge("k1").header("x-request-id", &too_long).header("traceparent", &traced)),
        201
    );
    assert_eq!(proxy.line("request_id", trace)["decision"], "run");
    assert_eq!(proxy.ask(&Request::get("/bare")), 201);
    assert!(proxy.line("path", "/bare").get("request_id").is_none());
    // A client that sends its key as the id of the request does not make it known.
    let key = "8e03978e-40d5-43e8-bc93-6894a57f9324";
    assert_eq!(proxy.ask(&charge(key).header("x-request-id", key)), 201);
    until_blocking("all lines", || (proxy.lines().len() == 3).then_some(()));
    assert!(!proxy.program.out().contains(key), "{}", proxy.program.out());
}

#[test]
fn a_warning_about_a_request_names_it() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("has one");
    let proxy = Logging::proxy(closed, "");
    assert_eq!(proxy.ask(&Request::get("/").header("x-request-id", "req-7")), 502);
    proxy.program.until_written("no answer from the upstream");
    let said = proxy.program.err();
    let warning = said.lines().find(|line| line.contains("no answer from the upstream")).expect("is there");
    assert!(warning.contains("request{request_id=req-7}"), "{warning}");
    // The control: a request without an id has none.
    assert_eq!(proxy.ask(&Request::get("/")), 502);
    let warnings = || proxy.program.err().matches("no answer from the upstream").count();
    until_blocking("the second warning", || (warnings() == 2).then_some(()));
    assert_eq!(proxy.program.err().matches("request_id").count(), 1, "{}", proxy.program.err());
}

#[test]
fn a_client_that_hung_up_is_logged_with_its_key_and_so_is_the_end_of_its_run() {
    let (_runtime, upstream) = upstream();
    let proxy = Logging::proxy(upstream.address, "");
    let request = Request::json("/slow", "{}").key("k1").from("alice").header("x-request-id", "req-1");
    let mut client = TcpStream::connect(proxy.address).expect("connects");
    client.write_all(&request.bytes_for("localhost")).expect("is written");
    until_blocking("the run", || (upstream.ledger.begun("k1") > 0).then_some(()));
    drop(client);
    let gone = proxy.line("decision", "gone");
    assert_eq!((&gone["status"], &gone["whole"]), (&Value::Null, &false.into()));
    let ended = proxy.line("decision", "ended");
    assert_eq!((&ended["status"], &ended["path"]), (&201.into(), &"/slow".into()));
    assert!(gone["key"].is_string() && gone["key"] == ended["key"], "{gone} {ended}");
    assert_eq!((&gone["request_id"], &ended["request_id"]), (&"req-1".into(), &"req-1".into()));
    assert!(ended["ms"].as_f64() > gone["ms"].as_f64() && ended["upstream_ms"].is_number(), "{ended}");
    // The retry gets what the run ended with; the control: its own line is no `ended`.
    assert_eq!(proxy.ask(&request), 201);
    until_blocking("the retry", || (proxy.lines().len() == 3).then_some(()));
    assert_eq!(proxy.lines()[2]["decision"], "replay");
}

#[test]
fn the_peer_is_the_client_that_a_trusted_proxy_names_and_no_other() {
    let (_runtime, upstream) = upstream();
    let from = |path: &str| Request::get(path).header("x-forwarded-for", "203.0.113.9");
    let trusting = Logging::proxy(upstream.address, "trusted_proxies = ['127.0.0.0/8']");
    assert_eq!(trusting.ask(&from("/trusted")), 201);
    assert_eq!(trusting.line("path", "/trusted")["peer"], "203.0.113.9");
    let wary = Logging::proxy(upstream.address, "");
    assert_eq!(wary.ask(&from("/untrusted")), 201);
    assert_eq!(wary.line("path", "/untrusted")["peer"], "127.0.0.1");
    let trusting = Logging::serve("trusted_proxies = ['127.0.0.1']");
    assert_eq!(trusting.ask(&from("/openapi.json")), 200);
    assert_eq!(trusting.line("path", "/openapi.json")["peer"], "203.0.113.9");
    let wary = Logging::serve("");
    assert_eq!(wary.ask(&from("/openapi.json")), 200);
    assert_eq!(wary.line("path", "/openapi.json")["peer"], "127.0.0.1");
}

#[test]
fn a_claim_server_logs_who_asked_for_which_key_and_what_was_decided() {
    let tokens = tempfile::tempdir().expect("a folder for a test");
    let file = tokens.path().join("tokens.toml");
    let token = Token::new(Role::Work, &[]).named("billing");
    std::fs::write(&file, token.toml()).expect("is written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("is set");
    let serving = Logging::serve(&format!("tokens = '{}'", file.display()));
    let claim = |name: &str| json!({ "operation": "charge", "name": name });
    let asked = Request::post_json("/v1/claim", &claim("one")).by(&token).header("x-request-id", "req-1");
    assert_eq!(serving.ask(&asked), 200);
    let line = serving.line("request_id", "req-1");
    assert_eq!((&line["method"], &line["path"]), (&"POST".into(), &"/v1/claim".into()));
    assert_eq!(
        (&line["status"], &line["decision"], &line["peer"]),
        (&200.into(), &"run".into(), &"127.0.0.1".into())
    );
    assert_eq!(
        (&line["token"], &line["role"], &line["whole"]),
        (&"billing".into(), &"work".into(), &true.into())
    );
    let looked = Request::get("/v1/record?operation=charge&name=one").by(&token);
    assert_eq!(serving.ask(&looked), 200);
    let looked = serving.line("path", "/v1/record");
    assert!(line["key"].is_string() && line["key"] == looked["key"], "{line} {looked}");
    let batch = json!({ "items": [claim("two"), claim("three")] });
    assert_eq!(serving.ask(&Request::post_json("/v1/claim/batch", &batch).by(&token)), 200);
    let batch = serving.line("path", "/v1/claim/batch");
    assert!(batch.get("key").is_none() && batch.get("decision").is_none(), "{batch}");
    // Without a token there is no name; a probe is not logged; and nobody's token ever is.
    assert_eq!(serving.ask(&Request::get("/v1/stats")), 401);
    assert!(serving.line("path", "/v1/stats").get("token").is_none());
    assert_eq!(serving.ask(&Request::get("/readyz")), 200);
    assert_eq!(serving.ask(&Request::get("/docs")), 200);
    serving.line("path", "/docs");
    let out = serving.program.out();
    assert!(!out.contains("/readyz") && !out.contains(&token.text) && !out.contains("one"), "{out}");
}

#[test]
fn a_claim_over_the_api_remembers_its_event_or_else_its_request() {
    let serving = Logging::serve("");
    let claim = |body: Value, request: &str| {
        let asked = Request::post_json("/v1/claim", &body).header("x-request-id", request);
        assert_eq!(serving.ask(&asked), 200);
    };
    claim(json!({ "operation": "charge", "name": "one" }), "req-1");
    claim(json!({ "operation": "charge", "name": "two", "first_event": "evt-2" }), "req-2");
    let first = |name: &str| {
        let target = format!("/v1/record?operation=charge&name={name}");
        let answer = Client::new(serving.address).ask(&Request::get(&target).header("host", "localhost"));
        answer.and_then(|answer| answer.ok_json()).expect("is answered")["record"]["first_event"].clone()
    };
    assert_eq!((first("one"), first("two")), ("req-1".into(), "evt-2".into()));
}

#[test]
fn the_access_log_of_a_claim_server_can_be_text_or_off() {
    let lines_of = |form: &str| {
        let mut command = semel();
        command.env_remove("SEMEL_TOKENS").env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--access-log", form]);
        let mut program = Program::start(&mut command).expect("starts");
        let address = program.listening().expect("listens");
        Client::new(address)
            .ask(&Request::get("/openapi.json").header("host", "localhost"))
            .expect("is answered");
        program.signal(Signal::INT);
        assert!(program.wait().success());
        program.out()
    };
    assert_eq!(lines_of("off"), "");
    let text = lines_of("text");
    assert!(text.contains("Z 127.0.0.1 GET /openapi.json 200 ") && text.lines().count() == 1, "{text}");
}

#[test]
fn every_line_of_a_process_begins_with_the_time() {
    let (_runtime, upstream) = upstream();
    let is_timed = |line: &str| {
        let time = line.split(' ').next().unwrap_or_default();
        time.len() == 27 && time.starts_with("20") && time.ends_with('Z') && time.contains('T')
    };
    for mut process in [Logging::proxy(upstream.address, ""), Logging::serve("")] {
        process.program.signal(Signal::HUP);
        process.program.until_written("reloaded");
        process.stop();
        // What is indented goes on with the line before.
        let said = process.program.err();
        let lines: Vec<_> = said.lines().filter(|line| !line.starts_with("  ")).collect();
        assert!(lines.len() >= 4, "{said}");
        for line in lines {
            assert!(is_timed(line), "{line}");
        }
    }
}
