//! semel
pub mod clock;
pub mod codec;
mod error;
mod fingerprint;
mod key;
pub mod machine;
mod outcome;
mod policy;
pub mod record;
pub mod store;
pub use error::{Error, ErrorKind, Result};
pub use fingerprint::Fingerprint;
pub use key::{Key, NAME_BYTES_MAX, PART_BYTES_MAX, RecordId, SCOPE_PARTS_MAX};
pub use outcome::{Outcome, OutcomeKind};
pub use policy::{LEASE_DEFAULT, Lapse, OnFailure, OnOutage, Policy, RETENTION_DEFAULT};
