//! HTTP, rule by rule: what a client sees of the layer and of the running proxy, which behave the same.
//!
//! - `header`, `coverage`: H01 to H12. `replay`, `durable`: H20 to H26. `mismatch`, `concurrency`: H30 to H42.
//! - `failure`, `death`, `unkept`, `probes`, `unknown`: H50 to H59. `callers`, `isolation`: H60 to H62. `wire`, `memory`, `logs`: H63 to H65.
//! - `profiles`; `cratestack`: what another system promises. `completeness`: no rule is forgotten.
//! - `rules`: a test for each side. `front`, `layered`, `proxied`: the sides. `setup`, `shelf`: what they are told, and where
//!   they keep it. `service`, `responses`: what is behind them.
//! - `multiplexed`: HTTP/2; HTTP/1.1 byte by byte is in `test_http`. `tamper`, `listener`: what a store holds, what is said.

mod callers;
mod completeness;
mod concurrency;
mod coverage;
mod cratestack;
mod death;
mod durable;
mod failure;
mod front;
mod header;
mod isolation;
mod layered;
mod listener;
mod logs;
mod memory;
mod mismatch;
mod multiplexed;
mod probes;
mod profiles;
mod proxied;
mod replay;
mod responses;
mod rules;
mod service;
mod setup;
mod shelf;
mod tamper;
mod unkept;
mod unknown;
mod wire;
