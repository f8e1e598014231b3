//! Building blocks for authors of sources.
//!
//! A program that only reads a source needs none of this. If you implement [`Source`](super::Source) for a broker:
//!
//! - [`Dial`] connects. [`fetch`](super::Source::fetch) may be dropped at any await and called again; `Dial` keeps the
//!   connection attempt that was under way, so that a caller with a short timeout still gets connected.
//! - [`Outstanding`] tracks what was delivered and not yet acknowledged, for brokers that cannot take a delivery back:
//!   it delivers again itself what was given back, after its delay.

mod dial;
mod outstanding;

pub use dial::Dial;
pub use outstanding::Outstanding;
