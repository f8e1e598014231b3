//! semel makes work happen once, however often it is asked for.
//!
//! Clients retry, brokers redeliver, processes die between the effect and the note that it happened. A caller
//! *claims* a key; exactly one gets to run; everyone else is told what happened.
//!
//! ```
//! use semel::{Key, Once, Semel, store::MemoryStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let semel = Semel::new(MemoryStore::new());
//! let key = Key::scoped(["acme"], "charge", "order-1042")?;
//! let request = ("EUR", 4_200);
//!
//! let charge = |permit: semel::Permit| async move {
//!     // Give the provider a key of its own: the same on every attempt.
//!     let _provider_key = permit.derive("provider.charge");
//!     Ok::<_, std::io::Error>("ch_1".to_string())
//! };
//! match semel.once(&key, &request, charge).await? {
//!     Once::Ran(id) => println!("charged now: {id}"),
//!     Once::Replayed(id) => println!("charged before: {id}"),
//!     Once::Busy(busy) => println!("being charged; ask again in {:?}", busy.retry_after()),
//!     Once::Mismatch(_) => println!("order-1042 was charged with another request"),
//!     Once::Held(held) => println!("a person must decide: {}", held.reason()),
//!     Once::Unprotected(_) => println!("only under `OnOutage::Open`"),
//! }
//!
//! // However often it is called, the function does not run again.
//! assert!(matches!(semel.once(&key, &request, charge).await?, Once::Replayed(id) if id == "ch_1"));
//! semel.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Semel::once`] is the short way. [`Semel::claim`] gives the [`Permit`] to code that completes it later, elsewhere,
//! or not at all.
//!
//! # What is promised
//!
//! | the effect | promise |
//! |---|---|
//! | written in the same database transaction as the outcome | exactly once |
//! | checks the permit's [fence](Permit::fence) | at most one accepted |
//! | anything else | never two at a time while leases hold; after a crash the [`Lapse`] policy decides, and the [attempt](Permit::attempt) says so |
//!
//! # Layout
//!
//! - [`machine`]: every decision, pure: `(record, ask, now) -> answer, next record`.
//! - `engine`: carries decisions to a store: claims, permits, heartbeats, batches, waiting, sweeping. [`swap_loop`]: the
//!   one loop from ruling to swap.
//! - [`store`]: the contract of a store, and the one in memory.
//! - [`record`]: what a store keeps for one key; `key`, `fingerprint`, `outcome`: its parts.
//! - `policy`: what a caller may choose. [`clock`]: time as stores see it. `error`: what may be done now.
//! - [`codec`]: records as bytes, for ever. [`metrics`]: the table of all metrics. `observe`: the engine's own.
//! - `id_map`, `per_thread`, `lock`, `finite`: a map by id, values that many threads write, locks that outlive a panic,
//!   the search for numbers that JSON has no word for.

pub mod clock;
pub mod codec;
mod engine;
mod error;
mod fingerprint;
mod finite;
mod id_map;
mod key;
mod lock;
pub mod machine;
pub mod metrics;
mod observe;
mod outcome;
mod per_thread;
mod policy;
pub mod record;
pub mod store;

pub use engine::swap_loop;
pub use engine::{
    BoxedRule, BoxedSwapLoop, Busy, Claim, ClaimedAll, Decision, Heartbeat, Held, Mismatch, Once, OnceError,
    OperatorAnswer, Permit, PermitParts, Probed, RecordedOnce, Renewal, Replay, Semel, SemelBuilder,
    SweepReport,
};
pub use error::{Error, ErrorKind, Result};
pub use fingerprint::Fingerprint;
pub use key::{Key, NAME_BYTES_MAX, PART_BYTES_MAX, RecordId, SCOPE_PARTS_MAX};
pub use machine::settle::{HoldAnswer, ReleaseAnswer, Resolution, Resolved};
pub use observe::Stats;
pub use outcome::{Outcome, OutcomeKind, Reference};
pub use policy::{
    LEASE_DEFAULT, LEASE_MAX, Lapse, OnFailure, OnOutage, Policy, RETENTION_DEFAULT, RETENTION_MAX,
};
