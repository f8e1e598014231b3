//! The claim server: who is let in, what is bounded, and how it ends.
//!
//! - [`started`]: servers and tokens for these tests. [`access`], [`host`]: who may ask, and from where.
//! - [`lines`]: HTTP/1.1, HTTP/2, TLS and slow clients. [`audited`]: actions that are written down first. [`ending`]: drains.

mod access;
mod audited;
mod ending;
mod host;
mod lines;
mod started;
mod store_health;
