//! Events in a file, a command that leaves traces, and a consumer between them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use test_http::Program;
pub(crate) use test_http::until_blocking as until;

use crate::binary::{Ran, ran, semel};
use crate::place::Place;

/// A folder with a file of events, and a file of traces.
pub(crate) struct Feed {
    folder: TempDir,
    name: &'static str,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self::named("events.jsonl")
    }

    pub(crate) fn named(name: &'static str) -> Self {
        let feed = Self { folder: tempfile::tempdir().expect("a folder for a test"), name };
        std::fs::write(feed.events(), b"").expect("is written");
        feed
    }

    /// As many orders as said, one a line.
    pub(crate) fn of_orders(orders: usize) -> Self {
        let feed = Self::new();
        feed.append(0..orders);
        feed
    }

    /// More orders, at the end of the file.
    pub(crate) fn append(&self, orders: impl IntoIterator<Item = usize>) {
        let mut lines = String::new();
        for order in orders {
            writeln!(lines, "{{\"id\":\"order-{order}\",\"cents\":4200}}").expect("is text");
        }
        self.append_text(&lines);
    }

    pub(crate) fn append_text(&self, text: &str) {
        let mut file = std::fs::OpenOptions::new().append(true).open(self.events()).expect("is there");
        file.write_all(text.as_bytes()).expect("is written");
    }

    pub(crate) fn events(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The source that reads the file to its end.
    pub(crate) fn source(&self) -> String {
        format!("file:{}", self.events().display())
    }

    /// A command that leaves a trace of every run: its key and its attempt.
    pub(crate) fn tracing(&self, more: &str) -> String {
        format!(
            "{more} printf '%s %s\\n' \"$SEMEL_KEY\" \"$SEMEL_ATTEMPT\" >> {}",
            self.traces_file().display()
        )
    }

    fn traces_file(&self) -> PathBuf {
        self.path("traces")
    }

    /// The attempts that each key's command ran to its end in, in the order of their traces.
    pub(crate) fn traces(&self) -> BTreeMap<String, Vec<u32>> {
        let text = std::fs::read_to_string(self.traces_file()).unwrap_or_default();
        let mut traces = BTreeMap::<String, Vec<u32>>::new();
        // The last line may be half of one.
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let (key, attempt) = line.rsplit_once(' ').expect("a key and an attempt");
            traces.entry(key.to_owned()).or_default().push(attempt.parse().expect("is a number"));
        }
        traces
    }

    /// How many runs left a trace.
    pub(crate) fn runs(&self) -> usize {
        self.traces().values().map(Vec::len).sum()
    }
}

/// The binary on the way to consume, in pipeline `orders`.
pub(crate) fn consume(place: &Place, source: &str, exec: &str, more: &str) -> Command {
    let mut command = semel();
    command.env("SEMEL_STORE", place.url()).env_remove("SEMEL_SOURCE");
    command.args(["consume", "--pipeline", "orders", "--source", source, "--exec", exec]);
    command.args(more.split(' ').filter(|word| !word.is_empty()));
    command
}

/// Runs it to its end.
pub(crate) fn consumed(place: &Place, source: &str, exec: &str, more: &str) -> Ran {
    ran(&mut consume(place, source, exec, more))
}

/// It must have ended with code 1, and with an error behind all that it said; that error.
#[track_caller]
pub(crate) fn stopped(ran: &Ran) -> String {
    assert_eq!(ran.code, Some(1), "{}\n{}", ran.err, ran.out);
    let at = ran.err.find("error: ").unwrap_or_else(|| panic!("no error: {}", ran.err));
    ran.err[at..].to_owned()
}

/// A consumer that is running. Dropped, it is killed.
pub(crate) struct Consuming(Program);

impl Consuming {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(Program::start(command).expect("the binary starts"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.0.signal(signal);
    }

    /// What it has said on standard error by now.
    pub(crate) fn said(&self) -> String {
        self.0.err()
    }

    pub(crate) fn says(&self, part: &str) {
        until(part, || self.said().contains(part).then_some(()));
    }

    pub(crate) fn kill(self) {
        self.0.kill().expect("is ours");
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ran {
        let status = self.0.wait();
        // The pipes end with it, unless a command holds them.
        std::thread::sleep(Duration::from_millis(100));
        Ran { code: status.code(), out: self.0.out(), err: self.said() }
    }
}

/// The length of a file: where its last line ends.
pub(crate) fn length(file: &Path) -> String {
    std::fs::metadata(file).expect("is there").len().to_string()
}
