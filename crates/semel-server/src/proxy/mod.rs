//! The reverse proxy: the layer in front of a service that is not changed.

mod settings;

pub use settings::{AccessLog, Bounds, ProxySettings, ServerTls, Timeouts, UpstreamVersion};
