//! The reverse proxy: the layer in front of a service that is not changed.
//!
//! A request's way: [`client`] takes its connection, [`front`] lets it in, the layer of `semel-http` decides on it,
//! [`forward`] makes it one of the proxy's own, and [`upstream`] sends it, once. Its answer goes back the same way.
//!
//! - [`settings`](ProxySettings): what a proxy may be told. [`proxy`](Proxy): started, reloaded, drained.
//! - [`client`], [`request`], [`upstream`]: either side, and what becomes of a request's head in between.
//! - [`front`], [`in_flight`], [`answer`]: what every request goes through. [`log`], [`tally`]: what is noted of it.
//! - [`tunnel`]: connections that became something else than HTTP.
//! - [`phase`], [`idle`], [`wire`], [`tls`]: the end of it all, waiting, lines, certificates.

mod answer;
mod client;
mod forward;
mod front;
mod idle;
mod in_flight;
mod log;
mod phase;
#[expect(clippy::module_inception, reason = "a proxy is what this is about")]
mod proxy;
mod request;
mod settings;
mod tally;
mod tls;
mod tunnel;
mod upstream;
mod wire;

pub use client::{BodyError, ClientBody};
pub use proxy::{Drained, Proxy};
pub use settings::{AccessLog, Bounds, ProxySettings, ServerTls, Timeouts, UpstreamVersion};
pub use upstream::UpstreamBody;
