//! Everything that the handler is served behind.

use anyhow::{Context, Result};
use axum::Router;
use clap::ValueEnum;

use super::{axum_idempotent, cratestack, semel};
use crate::args::HttpServeAsk;
use crate::http::api::{Runs, charges, counts};

/// What is around the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layered {
    /// Nothing.
    Bare,
    /// semel's layer on the memory store.
    SemelMemory,
    /// semel's layer on the file store, in the folder that is named.
    SemelFile,
    /// The layer of axum-idempotent, on its store in memory.
    AxumIdempotent,
    /// The layer of cratestack-axum on the Redis that is named.
    CratestackRedis,
    /// The same on a map.
    CratestackMap,
}

impl Layered {
    /// How the command line calls it.
    pub(crate) fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The handler, behind what is asked for.
pub(in crate::http) fn router(ask: &HttpServeAsk) -> Result<Router> {
    let runs = Runs::default();
    let charges = charges(runs.clone());
    let place = || ask.place.as_deref().context("a folder or a URL has to be named");
    let layered = match ask.layered {
        Layered::Bare => charges,
        Layered::SemelMemory => semel::on_memory(charges),
        Layered::SemelFile => semel::on_file(charges, place()?)?,
        Layered::AxumIdempotent => axum_idempotent::layered(charges),
        Layered::CratestackRedis => cratestack::on_redis(charges, place()?)?,
        Layered::CratestackMap => cratestack::on_map(charges),
    };
    Ok(layered.merge(counts(runs)))
}
