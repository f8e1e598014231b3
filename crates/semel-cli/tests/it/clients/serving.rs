//! `semel serve`, as people start it, and a word with it over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::binary::{run, semel};
use crate::place::Place;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server. Dropped, it is killed.
pub(super) struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    /// Starts on a free port, for everybody on this machine.
    pub(super) fn on(place: &Place) -> Self {
        Self::start(place, semel())
    }

    /// The same for a token that may work in one scope: the token.
    pub(super) fn for_scope(place: &Place, scope: &str) -> (Self, String) {
        let new = run(&format!("token new --name tests --role work --scope {scope}"));
        let mut command = semel();
        // What is to be appended to a file of tokens is a file of tokens.
        command.env("SEMEL_TOKENS", &new.err);
        (Self::start(place, command), new.fine().trim().to_owned())
    }

    fn start(place: &Place, mut command: Command) -> Self {
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", place.url()]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stderr.take().expect("is piped")).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let address = lines.by_ref().find_map(|line| {
            let address = listening(&line);
            said.push(line);
            address
        });
        // What it says later is read, so that it never waits for somebody to read it.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.unwrap_or_else(|| panic!("the server ended: {said:?}"));
        Self { child, address }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends one request, and reads the JSON of its answer.
    pub(super) fn post(&self, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(&self.address).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the server answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
        serde_json::from_str(body).expect("is JSON")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Where it says that it listens.
fn listening(line: &str) -> Option<String> {
    let (_, after) = line.split_once("listening on http://")?;
    Some(after.split([';', ',', ' ']).next()?.to_owned())
}
