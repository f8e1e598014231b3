//! NATS: stops and kills.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use test_services::Nats;

/// What the server's JetStream answers to one request.
fn ask(port: u16, subject: &str, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let length = request.len();
    let lines = format!(
        "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB {subject} answer {length}\r\n{request}\r\n"
    );
    stream.write_all(lines.as_bytes())?;
    let mut lines = BufReader::new(stream).lines();
    let is_answer =
        |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| line.starts_with("MSG answer"));
    lines.by_ref().find(is_answer).transpose()?;
    lines.next().unwrap_or_else(|| Ok(String::new()))
}

#[test]
fn what_a_stream_acknowledged_survives_a_kill() {
    let mut server = Nats::start().unwrap();
    let port = server.port();
    let made =
        ask(port, "$JS.API.STREAM.CREATE.S", r#"{"name":"S","subjects":["s"],"storage":"file"}"#).unwrap();
    assert!(made.contains("\"created\""), "{made}");
    let kept = ask(port, "s", "event").unwrap();
    assert!(kept.contains("\"seq\":1"), "{kept}");
    server.kill().unwrap();
    assert!(ask(port, "s", "event").is_err(), "it still answers");
    server.resume().unwrap();
    let kept = ask(port, "s", "event").unwrap();
    assert!(kept.contains("\"seq\":2"), "{kept}");
    // Control: a stream in memory starts over.
    ask(port, "$JS.API.STREAM.CREATE.M", r#"{"name":"M","subjects":["m"],"storage":"memory"}"#).unwrap();
    ask(port, "m", "event").unwrap();
    server.stop().unwrap();
    server.resume().unwrap();
    let lost = ask(port, "$JS.API.STREAM.INFO.M", "").unwrap();
    assert!(lost.contains("\"messages\":0") || lost.contains("not found"), "{lost}");
    let kept = ask(port, "$JS.API.STREAM.INFO.S", "").unwrap();
    assert!(kept.contains("\"messages\":2"), "{kept}");
}
