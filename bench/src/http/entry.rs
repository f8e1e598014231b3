//! Who is measured, doing what.

use std::path::Path;

use anyhow::{Context, Result};

use super::layers::Layered;
use super::load::Keys;
use super::nginx::{self, AccessLog};
use super::process::Server;
use super::proxy::{self, Store};
use crate::args::HttpPart;
use crate::file::TempFolder;

pub(super) const BARE: &str = "bare handler";
pub(super) const SEMEL_MEMORY: &str = "semel, memory store";
pub(super) const SEMEL_FILE: &str = "semel, file store";
pub(super) const AXUM_IDEMPOTENT: &str = "axum-idempotent";
pub(super) const CRATESTACK_REDIS: &str = "cratestack-axum, Redis";
pub(super) const CRATESTACK_MAP: &str = "cratestack-axum, a map";
pub(super) const NGINX: &str = "nginx";
pub(super) const NGINX_LOG: &str = "nginx, access log";
pub(super) const PROXY_MEMORY: &str = "semel proxy, memory store";
pub(super) const PROXY_FILE: &str = "semel proxy, file store";

/// The layers of others.
pub(super) const PEERS: [&str; 3] = [AXUM_IDEMPOTENT, CRATESTACK_REDIS, CRATESTACK_MAP];

/// One line of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) keys: Keys,
    who: Who,
}

/// Who clients ask.
#[derive(Clone, Copy, Debug)]
enum Who {
    /// The handler, behind this.
    Handler(Layered),
    Nginx(AccessLog),
    Proxy(Store),
}

/// Where things are that outlive a window.
pub(super) struct Places<'a> {
    pub(super) folder: &'a TempFolder,
    pub(super) redis: &'a str,
    pub(super) semel: &'a Path,
}

/// Servers that are up.
pub(super) struct Stage {
    /// Who clients ask. Dropped first: a proxy has connections to the handler.
    pub(super) front: Server,
    handler: Option<Server>,
}

impl Stage {
    /// Where the handler is.
    pub(super) fn handler_port(&self) -> u16 {
        self.handler.as_ref().unwrap_or(&self.front).port
    }
}

const fn of(name: &'static str, who: Who, keys: Keys) -> Entry {
    Entry { name, keys, who }
}

/// The handler alone and behind layers.
const LAYERS: [Entry; 12] = {
    use Layered::{AxumIdempotent, Bare, CratestackMap, CratestackRedis, SemelFile, SemelMemory};
    use Who::Handler;
    [
        of(BARE, Handler(Bare), Keys::None),
        of(SEMEL_MEMORY, Handler(SemelMemory), Keys::None),
        of(SEMEL_MEMORY, Handler(SemelMemory), Keys::New),
        of(SEMEL_FILE, Handler(SemelFile), Keys::New),
        of(AXUM_IDEMPOTENT, Handler(AxumIdempotent), Keys::New),
        of(CRATESTACK_REDIS, Handler(CratestackRedis), Keys::New),
        of(CRATESTACK_MAP, Handler(CratestackMap), Keys::New),
        of(SEMEL_MEMORY, Handler(SemelMemory), Keys::Done),
        of(SEMEL_FILE, Handler(SemelFile), Keys::Done),
        of(AXUM_IDEMPOTENT, Handler(AxumIdempotent), Keys::Done),
        of(CRATESTACK_REDIS, Handler(CratestackRedis), Keys::Done),
        of(CRATESTACK_MAP, Handler(CratestackMap), Keys::Done),
    ]
};

/// Proxies before the handler.
const PROXIES: [Entry; 7] = [
    of(NGINX, Who::Nginx(AccessLog::Off), Keys::None),
    of(NGINX_LOG, Who::Nginx(AccessLog::On), Keys::None),
    of(PROXY_FILE, Who::Proxy(Store::File), Keys::None),
    of(PROXY_MEMORY, Who::Proxy(Store::Memory), Keys::New),
    of(PROXY_FILE, Who::Proxy(Store::File), Keys::New),
    of(PROXY_FILE, Who::Proxy(Store::File), Keys::Done),
    of(BARE, Who::Handler(Layered::Bare), Keys::None),
];

/// Everybody in one part.
pub(super) fn entries(part: HttpPart) -> &'static [Entry] {
    match part {
        HttpPart::Layer => &LAYERS,
        HttpPart::Proxy => &PROXIES,
    }
}

/// Whom all others of a part are compared with, and what it is asked.
pub(super) fn base(part: HttpPart) -> (&'static str, Keys) {
    match part {
        HttpPart::Layer => (BARE, Keys::None),
        HttpPart::Proxy => (NGINX, Keys::None),
    }
}

/// How many connections clients have.
pub(super) fn connections(part: HttpPart) -> usize {
    match part {
        HttpPart::Layer => 64,
        HttpPart::Proxy => 256,
    }
}

impl Entry {
    /// Starts it anew, with nothing kept of an earlier window but what Redis has.
    pub(super) fn start(&self, places: &Places) -> Result<Stage> {
        let folder = places.folder.fresh("server")?;
        let handler = || served(Layered::Bare, None);
        let (front, handler) = match self.who {
            Who::Handler(layered) => {
                let place = match layered {
                    Layered::SemelFile => Some(folder.to_str().context("the folder's name is text")?),
                    Layered::CratestackRedis => Some(places.redis),
                    _ => None,
                };
                (served(layered, place)?, None)
            }
            Who::Nginx(log) => {
                let handler = handler()?;
                (nginx::start(handler.port, log, &folder)?, Some(handler))
            }
            Who::Proxy(store) => {
                let handler = handler()?;
                (proxy::start(places.semel, handler.port, store, &folder)?, Some(handler))
            }
        };
        Ok(Stage { front, handler })
    }
}

/// This program, serving the handler behind what is named; `place` is where its store is.
fn served(layered: Layered, place: Option<&str>) -> Result<Server> {
    let word = layered.word();
    let words: Vec<&str> = ["http-serve", word.as_str()].into_iter().chain(place).collect();
    Server::of_this_program(&words)
}
