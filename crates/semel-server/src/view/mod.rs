//! Records as JSON, the same from the API and from the command line. Never a permit id: whoever knows one may settle.
//!
//! - [`record`](RecordView): a whole record. [`outcome`](OutcomeView): what a run produced, by size or with its bytes.
//! - [`parts`](Id): ids, moments and spans. [`words`]: a record in words. `hex`: numbers as digits.

mod hex;
mod outcome;
mod parts;
mod record;
pub mod words;

pub(crate) use hex::read as read_hex;
pub use outcome::{Content, OutcomeView, StepView};
pub use parts::{Id, Moment, millis};
pub use record::RecordView;
