//! `semel demo`, as the first thing that anybody runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::binary::{run, semel};

/// The two numbers of a row: without semel, and with it.
fn row(account: &str, what: &str) -> (u64, u64) {
    let line =
        account.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {account}"));
    let number =
        |word: &str| if word == "-" { 0 } else { word.replace(',', "").parse().expect("is a number") };
    let mut words = line.split_whitespace().rev().map(number);
    let with = words.next().expect("has a number");
    (words.next().expect("has two"), with)
}

#[test]
fn every_payment_is_charged_once_with_semel_and_not_without() {
    let account = run("demo --requests 60 --seed 1").fine();
    assert_eq!(row(&account, "payments wanted"), (60, 60));
    let (bare, guarded) = row(&account, "charges made");
    assert_eq!(guarded, 60, "{account}");
    assert!(bare > 60, "without semel, the same clients must be charged more than once: {account}");
    let (bare, guarded) = row(&account, "more than once");
    assert!(bare > 0 && guarded == 0, "{account}");
    assert!(account.contains("✗ without semel:") && account.contains("✓ with semel:"), "{account}");
}

#[test]
fn what_clients_and_the_api_counted_adds_up() {
    let account = run("demo --requests 60 --seed 2").fine();
    let with = |what| row(&account, what).1;
    let ended = with("answered by a run") + with("answered by a replay") + with("a person must look");
    assert_eq!(ended, 60, "{account}");
    assert_eq!(with("reused the key"), with("and were refused"), "{account}");
    assert_eq!(with("charges made") + with("answered 503"), with("requests seen"), "{account}");
    assert_eq!(with("requests sent"), 60 + with("of which retries"), "{account}");
}

#[test]
fn what_it_cannot_show_is_refused() {
    assert!(run("demo --requests 0").refused().contains("at least 1"));
    assert!(run("demo --requests 1000000").refused().contains("100000 at most"));
}

/// Ended also when a test fails.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a server answers to a payment of this amount, with a key.
fn paid(address: &str, cents: u32) -> String {
    let body = format!("{{\"payment\":\"mine\",\"cents\":{cents}}}");
    let mut stream = TcpStream::connect(address).expect("is up");
    let head = "POST /payments HTTP/1.1\r\nhost: demo\r\nconnection: close\r\nidempotency-key: mine";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).expect("is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("is answered");
    answer
}

#[test]
fn what_is_kept_up_can_be_tried_by_hand() {
    let mut child = Kept(
        semel().args(["demo", "--keep", "--requests", "5"]).stdout(Stdio::piped()).spawn().expect("starts"),
    );
    let out = BufReader::new(child.0.stdout.take().expect("is piped"));
    let mut addresses = Vec::new();
    for line in out.lines() {
        let line = line.expect("is text");
        if let Some((_, rest)) = line.split_once("curl -i http://") {
            addresses.push(rest.split('/').next().expect("has an address").to_owned());
        }
        if line.contains("Ctrl-C ends it") {
            break;
        }
    }
    let [proxy, again, other, api] = &addresses[..] else { panic!("{addresses:?}") };
    assert!(proxy == again && again == other && api != proxy);
    let first = paid(proxy, 4_200);
    assert!(first.starts_with("HTTP/1.1 201") && !first.contains("idempotent-replayed"), "{first}");
    let second = paid(proxy, 4_200);
    assert!(second.starts_with("HTTP/1.1 201") && second.contains("idempotent-replayed: true"), "{second}");
    assert!(paid(proxy, 1).starts_with("HTTP/1.1 422"));
    assert!(paid(api, 1).starts_with("HTTP/1.1 201"), "past the proxy, every request charges");
}
