//! The reverse proxy: the layer in front of a service that is not changed.
//!
//! A request's way: [`semel_listen`] takes its connection, `front` lets it in, the layer of `semel-http` decides on it,
//! `forward` makes it one of the proxy's own, and `upstream` sends it, once. Its answer goes back the same way.
//!
//! # Layout
//!
//! - [`config`]: from a configuration file to settings. [`settings`](ProxySettings): what a proxy may be told.
//! - [`proxy`](Proxy): started, reloaded, drained; what answers on the admin listener is [injected](AdminSide).
//! - `request`, `upstream`: the other side, and what becomes of a request's head on its way there.
//! - [`probe`](ProbeClient): asks the upstream what became of a run whose end is not known.
//! - `front`: what every request goes through. `access_log`: what is noted of it.
//! - `abandoned`: what becomes of an exchange whose client left.
//! - `tunnel`: connections that became something else than HTTP.

mod abandoned;
mod access_log;
pub mod config;
mod forward;
mod front;
mod probe;
mod proxy;
mod request;
mod settings;
mod tunnel;
mod upstream;

pub use probe::ProbeClient;
pub use proxy::{AdminSide, Proxy, Running, Starting};
pub use semel_listen::Drained;
pub use semel_ops::access_log::AccessLog;
pub use settings::{ProxySettings, UnderscoresInHeaders, UpstreamLimits, UpstreamVersion};
pub use upstream::UpstreamBody;
