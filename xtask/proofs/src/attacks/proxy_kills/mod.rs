//! `kill -9` of the proxy again and again under load, with and without a probe: what clients and the service see of it.

mod campaign;
mod client;
mod shop;

pub use campaign::{ProxyKills, proxy_kills};
