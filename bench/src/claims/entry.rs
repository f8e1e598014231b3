//! Who is measured, doing what.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::file::TempFolder;
use crate::http::{Server, free_port};

/// How many cycles ride in one request, where they do.
pub(super) const BATCH: usize = 100;
pub(super) const CONNECTIONS: usize = 64;

/// One line of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The bare echo.
    Echo,
    /// Claim and complete, a request each.
    Single(Store),
    /// A hundred of them in a request.
    Batched(Store),
    /// `SET NX` on a Redis that keeps nothing on a disk.
    Redis,
}

/// Where keys are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    Memory,
    File,
}

impl Entry {
    /// In the order of the table.
    pub(super) const ALL: [Self; 6] = [
        Self::Echo,
        Self::Single(Store::Memory),
        Self::Single(Store::File),
        Self::Batched(Store::Memory),
        Self::Batched(Store::File),
        Self::Redis,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Echo => "bare JSON echo",
            Self::Single(Store::Memory) => "semel, memory store, single requests",
            Self::Single(Store::File) => "semel, file store, single requests",
            Self::Batched(Store::Memory) => "semel, memory store, batches of 100",
            Self::Batched(Store::File) => "semel, file store, batches of 100",
            Self::Redis => "Redis, SET NX, no durability",
        }
    }

    /// How many requests a cycle takes: a claim and a complete, each shared by a batch.
    pub(super) fn requests_per_cycle(self) -> f64 {
        match self {
            Self::Echo | Self::Redis => 1.0,
            Self::Single(_) => 2.0,
            Self::Batched(_) => 2.0 / 100.0,
        }
    }

    /// Starts whoever is asked over HTTP anew; nobody, if that is Redis.
    pub(super) fn start(self, semel: &Path, folder: &TempFolder) -> Result<Option<Server>> {
        let store = match self {
            Self::Redis => return Ok(None),
            Self::Echo => return Server::of_this_program(&["claims-echo"]).map(Some),
            Self::Single(store) | Self::Batched(store) => store,
        };
        serve(semel, store, &folder.fresh("server")?).map(Some)
    }
}

/// `semel serve`, the real program from a release build, without tokens.
fn serve(semel: &Path, store: Store, folder: &Path) -> Result<Server> {
    ensure!(
        semel.is_file(),
        "there is no {}: run `cargo build --release -p semel-cli`, or say --semel",
        semel.display()
    );
    let port = free_port()?;
    let store = match store {
        Store::Memory => "memory:".to_owned(),
        Store::File => format!("file:{}", folder.join("store").display()),
    };
    let program = semel.to_str().context("the program's name is text")?;
    let listen = format!("127.0.0.1:{port}");
    Server::of_program(&[program, "serve", "--listen", &listen, "--store", &store], port, folder)
}
