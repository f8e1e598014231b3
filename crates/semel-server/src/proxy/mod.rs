//! The reverse proxy: the layer in front of a service that is not changed.

mod client;
mod forward;
mod front;
mod idle;
mod phase;
mod proxy;
mod refusal;
mod request;
mod settings;
mod tls;
mod upstream;
mod wire;

pub use client::{BodyError, ClientBody};
pub use proxy::Proxy;
pub use settings::{AccessLog, Bounds, ProxySettings, ServerTls, Timeouts, UpstreamVersion};
pub use upstream::UpstreamBody;
