//! `semel serve` and `semel token`, as the real binary.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use semel_listen::tls::provider;
use tempfile::TempDir;
use test_http::{Answer, Request, Server};

use crate::binary::{ran, run, semel};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server, killed when it is dropped.
struct Serving {
    server: Server,
    first: String,
}

impl Serving {
    fn start(command: &mut Command) -> Self {
        let mut server = Server::from_command(command).expect("starts");
        let mut first = server.next_line();
        while !first.contains("listening on") {
            first = server.next_line();
        }
        Self { server, first }
    }

    /// The next line that it says.
    fn line(&mut self) -> String {
        self.server.next_line()
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let get = Request::get(path).header("host", "localhost");
        let request = headers.iter().fold(get, |request, (name, value)| request.header(name, value));
        self.server.client().ask(&request).expect("is answered")
    }

    /// The status of the metrics' page for the holder of this token.
    fn metrics(&self, token: &str) -> u16 {
        self.get("/metrics", &[("authorization", &format!("Bearer {token}"))]).status
    }
}

fn serve() -> Command {
    let mut command = semel();
    command.env_remove("SEMEL_TOKENS").env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", "memory:"]);
    command
}

/// A token, and a file that knows it.
fn token(folder: &TempDir, role: &str) -> (String, PathBuf) {
    let made = ran(semel().args(["token", "new", "--name", role, "--role", role]));
    assert_eq!(made.code, Some(0), "{}", made.err);
    let path = folder.path().join("tokens.toml");
    std::fs::write(&path, &made.err).expect("is written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("is set");
    (made.out.trim().to_owned(), path)
}

#[test]
fn a_server_says_what_it_is_and_stops_when_it_is_told() {
    let mut serving = Serving::start(&mut serve());
    for part in ["http://127.0.0.1:", "memory:", "survive nothing", "no tokens: loopback only"] {
        assert!(serving.first.contains(part), "{part}: {}", serving.first);
    }
    assert!(serving.get("/readyz", &[]).status == 200);
    serving.server.signal(rustix::process::Signal::INT);
    assert!(serving.line().contains("stopping"));
    assert!(serving.line().contains("none was cut off"));
    assert!(serving.server.wait().success());
}

#[test]
fn a_token_is_good_from_the_signal_on_that_reads_its_file_again() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let (first, path) = token(&folder, "read");
    let mut serving = Serving::start(serve().arg("--tokens").arg(&path));
    assert!(serving.first.contains("1 token"), "{}", serving.first);
    assert!(serving.get("/metrics", &[]).status == 401);
    assert!(serving.metrics(&first) == 200);
    std::fs::write(&path, "[[token]").expect("is written");
    serving.server.signal(rustix::process::Signal::HUP);
    let said = serving.line();
    assert!(said.contains("not reloaded"), "{said}");
    while !serving.line().contains("tokens.toml:1:") {}
    assert!(serving.metrics(&first) == 200, "everything stays as it was");
    let (second, _) = token(&folder, "read");
    serving.server.signal(rustix::process::Signal::HUP);
    while !serving.line().contains("reloaded, 1 token") {}
    assert!(serving.metrics(&first) == 401);
    assert!(serving.metrics(&second) == 200);
}

/// A certificate for `localhost` and its key, in these files.
fn write_certificate(certificate: &Path, key: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("is made");
    std::fs::write(certificate, made.cert.pem()).expect("is written");
    std::fs::write(key, made.signing_key.serialize_pem()).expect("is written");
    made.cert.der().clone()
}

/// Whether a new client that trusts this certificate alone is answered.
fn is_shown(address: SocketAddr, certificate: &CertificateDer<'static>) -> bool {
    let mut trusted = RootCertStore::empty();
    trusted.add(certificate.clone()).expect("is taken");
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("are known")
        .with_root_certificates(trusted)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("is a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("begins");
    let mut stream = StreamOwned::new(client, TcpStream::connect(address).expect("connects"));
    stream.sock.set_read_timeout(Some(PATIENCE)).expect("is set");
    let mut answer = [0; 12];
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer == *b"HTTP/1.1 200"
}

#[test]
fn a_certificate_is_shown_from_the_signal_on_that_reads_its_files_again() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let [certificate, key, other_key] =
        ["cert.pem", "key.pem", "other.pem"].map(|name| folder.path().join(name));
    let old = write_certificate(&certificate, &key);
    let mut command = serve();
    command.arg("--tls-certificate").arg(&certificate).arg("--tls-key").arg(&key);
    let mut serving = Serving::start(&mut command);
    assert!(serving.first.contains("https://127.0.0.1:"), "{}", serving.first);
    let address = serving.server.address;
    assert!(is_shown(address, &old));
    // Half of what is new: the key is still the old one's.
    let new = write_certificate(&certificate, &other_key);
    assert!(!is_shown(address, &new), "nothing changes before the signal");
    serving.server.signal(rustix::process::Signal::HUP);
    let said = serving.line();
    assert!(said.contains("not reloaded") && said.contains("cert.pem"), "{said}");
    assert!(is_shown(address, &old), "everything stays as it was");
    std::fs::rename(&other_key, &key).expect("is renamed");
    serving.server.signal(rustix::process::Signal::HUP);
    let said = serving.line();
    assert!(said.contains("serve: reloaded"), "{said}");
    assert!(is_shown(address, &new), "new clients are shown the new one");
    assert!(!is_shown(address, &old), "and no longer the old one");
}

#[test]
fn tokens_may_come_from_the_environment() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let (token, path) = token(&folder, "operate");
    let text = std::fs::read_to_string(path).expect("is there");
    let serving = Serving::start(serve().env("SEMEL_TOKENS", text));
    assert!(serving.metrics(&token) == 200);
}

#[test]
fn beyond_loopback_a_server_wants_tokens() {
    let said = run("serve --listen 0.0.0.0:0 --store memory:").failed();
    assert!(said.contains("semel token new") && said.contains("127.0.0.1"), "{said}");
}

#[test]
fn what_a_file_means_for_a_server_is_printed_or_told_by_line() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let file = folder.path().join("semel.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).expect("is written");
        ran(semel().args(["serve", "--check", "--config"]).arg(&file))
    };
    let printed = check(
        "upstream = 'http://127.0.0.1:3000'\nstore = 'file:a'\n[server]\nlisten = 'localhost:9'\n[server.bounds]\nwaiting_max = 7\n",
    )
    .fine();
    for line in [
        "store = \"file:a\"",
        "listen          = \"127.0.0.1:9\"",
        "waiting_max              = 7",
        "drain     = \"30s\"",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    assert_eq!(check(&printed).fine(), printed, "what was printed means the same");
    let said =
        check("stoer = 1\n[server]\nlisen = 'x'\ntokens = 3\n[server.timeouts]\nhead = '1y'\n").failed();
    for line in [
        "1:1: `stoer` is no setting here; did you mean `store`?",
        "3:1: `lisen` is no setting here",
        "4:10: `tokens` is a number",
        "6:8: `head` is",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let said = check("[server]\nlisten = '0.0.0.0:1'\n").failed();
    assert!(said.contains("without tokens everybody could do everything"), "{said}");
}

#[test]
fn a_new_token_is_printed_once_and_its_digest_is_what_the_file_has() {
    let made =
        ran(semel().args(["token", "new", "--name", "on call", "--role", "work", "--scope", "acme/eu"]));
    let token = made.out.trim();
    assert!(token.starts_with("semel_") && token.len() == 49, "{token}");
    assert!(made.err.contains("scope = [\"acme\", \"eu\"]") && !made.err.contains(token), "{}", made.err);
    let digest = digest_of(token);
    assert!(made.err.contains(&format!("digest = \"{digest}\"")), "{}", made.err);
    let none = ran(semel().args(["token", "digest"])).failed();
    assert!(none.contains("semel token digest"), "{none}");
}

fn digest_of(token: &str) -> String {
    let mut child = semel()
        .args(["token", "digest"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    child.stdin.take().expect("is piped").write_all(token.as_bytes()).expect("is written");
    let output = child.wait_with_output().expect("ends");
    String::from_utf8(output.stdout).expect("is text").trim().to_owned()
}

#[test]
fn a_request_becomes_a_span_of_the_trace_that_it_names() {
    let collector = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = collector.local_addr().expect("has an address");
    let (tell, spans) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in collector.incoming().flatten() {
            let (head, body) = exchanged(stream);
            if tell.send((head, body)).is_err() {
                return;
            }
        }
    });
    let mut serving = Serving::start(serve().arg("--otlp").arg(format!("http://{address}")));
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    assert_eq!(serving.get("/healthz", &[("traceparent", &parent)]).status, 200);
    // Its last spans are sent before it ends.
    serving.server.signal(rustix::process::Signal::INT);
    let (head, body) = spans.recv_timeout(PATIENCE).expect("a span arrives");
    assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: application/x-protobuf"), "{head}");
    let holds = |part: &[u8]| body.windows(part.len()).any(|window| window == part);
    assert!(holds(b"GET /healthz") && holds(b"semel serve"), "it is called by its route");
    let trace_id: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&trace[at * 2..at * 2 + 2], 16).expect("is hex")).collect();
    assert!(holds(&trace_id), "it is part of the trace that the request named");
    assert!(serving.server.wait().success());
}

/// One request of HTTP/1.1, whole, and an empty answer to it.
fn exchanged(mut stream: TcpStream) -> (String, Vec<u8>) {
    stream.set_read_timeout(Some(PATIENCE)).expect("is set");
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("comes");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("is text");
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(ToOwned::to_owned));
    let mut body = vec![0; length.and_then(|length| length.trim().parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body).expect("comes");
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("is written");
    (head, body)
}

#[test]
fn the_example_in_the_repository_means_something_to_a_server_too() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/semel.toml");
    let printed = ran(semel().args(["serve", "--check", "--config"]).arg(file)).fine();
    assert!(printed.contains("[server]\nlisten"), "{printed}");
}
