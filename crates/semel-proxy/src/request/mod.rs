//! What becomes of a request's head between a client and the upstream.
//!
//! - [`hop_by_hop`]: headers that are between two neighbours only.
//! - [`forwarded`]: what the upstream is told of the client.
//! - [`target`]: where it goes.
//!
//! The upstream sees the client's own `Host`: a service that is put behind the proxy must make the same links as
//! before. `X-Forwarded-For`, `-Proto` and `-Host` say the rest. They are appended to what a trusted proxy in front
//! wrote, and replace whatever anybody else did. `Via` is not written, as with most gateways: it would tell outsiders
//! what runs here and help nobody.

mod forwarded;
mod hop_by_hop;
mod target;

pub(super) use forwarded::Forwarded;
pub(super) use hop_by_hop::{strip_request, strip_response, strip_trailers};
pub(super) use target::Target;
