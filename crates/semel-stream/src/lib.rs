//! Events processed once, and offsets that never lie.
//!
//! Brokers redeliver, consumers crash between the effect and the acknowledgement, rebalances wake zombies. A
//! [`Pipeline`] processes each event once: it claims the event, runs the handler, completes the record (the *receipt*),
//! and only then moves the *offset* of the stream. A crash between the two is harmless: the event is read again and its
//! receipt found.
//!
//! # Layout
//!
//! - `pipeline`: receipts and offsets on any store, in batches; `receipt`, `offset`: what is kept.
//! - `statistics`: what a pipeline has done, page by page and in numbers.
//! - `event`: what a source hands over; `key`: what makes two events the same one.
//! - [`source`]: where events come from: the contract of a source, files, and what authors of sources need. Brokers are
//!   crates of their own: `semel-nats`, `semel-rabbitmq`, `semel-kafka`, `semel-redis-streams`.
//! - `consumer`: the loop over a source; `dead_letter`: what becomes of events that cannot be processed; `requeue`: how they
//!   are sent back. `event_id`: which event is meant, and the keys of its runs.
//!
//! Effects that commit together with receipt and offset: `semel_postgres::InTransaction`.

mod consumer;
mod dead_letter;
mod event;
mod event_id;
mod failure;
mod key;
mod offset;
mod pipeline;
mod process;
mod receipt;
mod requeue;
pub mod source;
mod statistics;

pub use consumer::{
    At, Backoff, Checkpoint, Consumer, OnBusy, OnHeld, Order, Report, Step, Stopper, Task, Watch, Work,
    Worked,
};
pub use dead_letter::{
    DEAD_LETTER_BYTES_MAX_DEFAULT, DeadLetter, DeadLetters, KeptLetter, KeptPayload, LoggedDeadLetters,
};
pub use event::{Event, Header};
pub use event_id::EventId;
pub use failure::{Failure, Handled};
pub use key::{EventKey, KeyFault, KeyFunction, OnMissingKey};
pub use offset::{Commit, Reader, StreamOffset};
pub use pipeline::{Pipeline, PipelineBuilder, RECEIPT_RETENTION_DEFAULT};
pub use process::{Processed, Seen, with_heartbeat};
pub use receipt::{DEAD_LETTER_KIND, Receipt, dead_letter};
pub use requeue::{Requeue, RequeueAsk};
pub use semel::machine::offset::{Offset, Position};
pub use semel::machine::waiting::Waiting;
pub use statistics::{EventRecord, EventState, ReceiptFilter, ReceiptPage, ReceiptsAfter, Statistics};
