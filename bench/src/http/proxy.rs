//! `semel proxy`, the real program from a release build.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::process::{Server, free_port};
use crate::report::workspace;

/// Where it keeps keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    Memory,
    File,
}

/// The program: where it was said to be, or where a release build of the main workspace puts it.
pub(crate) fn program(said: Option<&Path>) -> PathBuf {
    let target = || {
        let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        named.unwrap_or_else(|| workspace().join("../target"))
    };
    said.map_or_else(|| target().join("release/semel"), Path::to_path_buf)
}

/// Starts it before the server on port `upstream`.
pub(super) fn start(program: &Path, upstream: u16, store: Store, folder: &Path) -> Result<Server> {
    ensure!(
        program.is_file(),
        "there is no {}: run `cargo build --release -p semel-cli`, or say --semel",
        program.display()
    );
    let port = free_port()?;
    let program = program.to_str().context("the program's name is text")?;
    let store = match store {
        Store::Memory => "memory:".to_owned(),
        Store::File => format!("file:{}", folder.join("store").display()),
    };
    let (upstream, listen) = (format!("http://127.0.0.1:{upstream}"), format!("127.0.0.1:{port}"));
    let where_to = ["--upstream", &upstream, "--listen", &listen, "--store", &store];
    // As nginx beside it: a proxy and nothing else.
    let no_more = ["--admin", "off", "--access-log", "off"];
    let line = [&[program, "proxy"], where_to.as_slice(), no_more.as_slice()].concat();
    Server::of_program(&line, port, folder)
}
