//! The reverse proxy: the layer in front of a service that is not changed.
//!
//! A request's way: [`listen`](crate::listen) takes its connection, [`front`] lets it in, the layer of `semel-http` decides on it,
//! [`forward`] makes it one of the proxy's own, and [`upstream`] sends it, once. Its answer goes back the same way.
//!
//! - [`settings`](ProxySettings): what a proxy may be told. [`proxy`](Proxy): started, reloaded, drained.
//! - [`request`], [`upstream`]: the other side, and what becomes of a request's head on its way there. [`tls`]: whom it trusts.
//! - [`front`], [`answer`]: what every request goes through. [`log`], [`tally`]: what is noted of it.
//! - [`tunnel`]: connections that became something else than HTTP.

mod answer;
mod forward;
mod front;
mod log;
#[expect(clippy::module_inception, reason = "a proxy is what this is about")]
mod proxy;
mod request;
mod settings;
mod tally;
mod tls;
mod tunnel;
mod upstream;

pub use proxy::{Drained, Proxy};
pub use settings::{AccessLog, Bounds, ProxySettings, Timeouts, UpstreamVersion};
pub use upstream::UpstreamBody;

pub use crate::listen::{BodyError, ClientBody, ServerTls, raise_open_files};
