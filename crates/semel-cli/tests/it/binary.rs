//! The binary under test.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::place::Place;

/// What a run of the binary came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The binary, with nothing of this process's own surroundings that could change what it does.
pub(crate) fn semel() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command
        .env_remove("SEMEL_STORE")
        .env_remove("SEMEL_TOKEN")
        .env_remove("SEMEL_TOKENS")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

/// Runs a line of words that have no spaces in them.
pub(crate) fn run(line: &str) -> Ran {
    ran(semel().args(line.split(' ').filter(|word| !word.is_empty())))
}

/// Runs a line on a store.
pub(crate) fn on(place: &Place, line: &str) -> Ran {
    let words = line.split(' ').filter(|word| !word.is_empty());
    ran(semel().env("SEMEL_STORE", place.url()).args(words))
}

pub(crate) fn ran(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("is text");
    Ran { code: status.code(), out: text(stdout), err: text(stderr) }
}

impl Ran {
    /// It must have gone well; what it printed.
    #[track_caller]
    pub(crate) fn fine(self) -> String {
        assert_eq!(self.code, Some(0), "{}\n{}", self.err, self.out);
        self.out
    }

    /// It must have failed with code 1; what it said.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!(self.code, Some(1), "{}\n{}", self.err, self.out);
        assert!(self.err.starts_with("error: "), "{}", self.err);
        self.err
    }

    /// It must have refused its arguments with code 2; what it said.
    #[track_caller]
    pub(crate) fn refused(self) -> String {
        assert_eq!(self.code, Some(2), "{}\n{}", self.err, self.out);
        assert_eq!(self.out, "");
        self.err
    }

    /// One JSON object.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.fine()).expect("is one JSON value")
    }

    /// A JSON object a line.
    #[track_caller]
    pub(crate) fn json_lines(self) -> Vec<Value> {
        self.fine().lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect()
    }
}
