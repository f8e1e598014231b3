//! Records as JSON, the same from the API and from the command line. Never a permit id: whoever knows one may settle.
//!
//! - [`record`](RecordView): a whole record. [`outcome`](OutcomeView): what a run produced, by size or with its bytes.
//! - [`offset`]: how far a pipeline has read. [`receipt`]: what became of an event. [`dead_letter`]: what is kept of one
//!   that was put aside.
//! - [`operator_answer`](OperatorAnswerView): what became of an operator's action.
//! - [`parts`](Id): ids, moments, spans and hex digits.

pub mod dead_letter;
pub mod offset;
mod operator_answer;
mod outcome;
mod parts;
pub mod receipt;
mod record;

pub use operator_answer::OperatorAnswerView;
pub use outcome::{Content, OutcomeView, ReferenceView, StepView};
pub use parts::{Id, Moment, millis, read_hex};
pub use record::{AttemptView, RecordView, StateView};
