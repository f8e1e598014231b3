//! Records as JSON, the same from the API and from the command line. Never a permit id: whoever knows one may settle.
//!
//! - [`record`](RecordView): a whole record. [`outcome`](OutcomeView): what a run produced, by size or with its bytes.
//! - [`offset`]: how far a pipeline has read. [`receipt`]: what became of an event.
//! - [`parts`](Id): ids, moments, spans and hex digits.

pub mod offset;
mod outcome;
mod parts;
pub mod receipt;
mod record;

pub use outcome::{Content, OutcomeView, StepView};
pub use parts::{Id, Moment, millis, read_hex};
pub use record::{RecordView, StateView};
