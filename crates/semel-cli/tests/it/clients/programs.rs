//! Python, Node and the compiler of TypeScript, as `cargo xtask test` installs them, and what they run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::binary::ran;

/// The Python client. Nothing that Python compiles is left in its folder.
pub(super) struct Python {
    compiled: TempDir,
}

impl Python {
    pub(super) fn new() -> Self {
        Self { compiled: folder() }
    }

    /// Python, in the client's folder.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("python3");
        command.current_dir(client("python")).env("PYTHONPYCACHEPREFIX", self.compiled.path());
        command.stdin(Stdio::null());
        command
    }
}

/// The TypeScript client and its tests, compiled to where nobody else is.
pub(super) struct TypeScript {
    compiled: TempDir,
}

impl TypeScript {
    /// Checks every type, and compiles.
    pub(super) fn compile() -> Self {
        let compiled = folder();
        let mut tsc = Command::new("tsc");
        tsc.args(["--strict", "--noEmitOnError", "--project", "."]).arg("--outDir").arg(compiled.path());
        ran(tsc.current_dir(client("typescript"))).fine();
        std::fs::copy(client("typescript").join("package.json"), compiled.path().join("package.json"))
            .expect("is copied: it says what kind of modules these are");
        Self { compiled }
    }

    /// Node, where the compiled tests are.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("node");
        command.current_dir(self.compiled.path().join("tests")).stdin(Stdio::null());
        command
    }

    /// The compiled files that hold tests.
    pub(super) fn tests(&self) -> Vec<PathBuf> {
        let listing = self.compiled.path().join("tests").read_dir().expect("is there");
        let files = listing.map(|entry| entry.expect("is listed").path());
        let mut tests: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".test.js")).collect();
        tests.sort();
        tests
    }
}

/// The folder of a client.
fn client(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients").join(language)
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for a test")
}
