//! Whether what callers saw of one key could have happened one after the other.
//!
//! Callers at the same time record what they asked, what they were told, and when on one shared counter. The
//! history is linearizable if there is an order of those events, true to the counter, in which the pure machine
//! would have given every one of those answers. A reply that was lost may have taken effect at any time after it
//! was asked for, or never.
//!
//! - [`recorder`](Recorder): asks a store on behalf of callers, and writes down each [`Event`].
//! - `model`: the record as the machine would have it, event by event.
//! - `moment`: when an event may have been decided and stamped, and from when a lease or a retention counts.
//! - `search`: looks for an order, and remembers where there is none.
//! - [`verdict`](Verdict): an order, or why there is none.
//! - [`concurrent`](concurrent_history()): many clients of one store at the same time, over many keys, judged key by key.
//!   [`ReadsElsewhere`]: reads from a standby, which must be found out. [`Report`]: the result.

mod concurrent;
mod model;
mod moment;
mod recorder;
mod search;
mod verdict;

pub use concurrent::ReadsElsewhere;
pub use concurrent::concurrent_history;
pub use recorder::Recorder;
pub use recorder::{Answer, Asked, Event, Seen, Told};
pub use search::{check, check_within};
pub use verdict::Report;
pub use verdict::Verdict;
