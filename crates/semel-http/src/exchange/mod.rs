//! One exchange: from a covered request to its answer, as one future.
//!
//! - `decide`: key, caller, body, fingerprint and claim. Dropped here, an exchange leaves nothing behind.
//! - `run`: the service is called once, and its response is settled before the client sees it.
//! - `future`: joins the two. Dropped while it runs, an exchange moves itself into a task and goes on.
//! - `deadline`: the one timer of an exchange, set anew for whatever it waits for.

mod deadline;
mod decide;
mod future;
mod run;

pub(crate) use decide::decide;
pub use future::ResponseFuture;
pub(crate) use run::start;
