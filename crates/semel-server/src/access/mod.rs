//! Who asks, what they may, how often, and the note of what they did.
//!
//! - [`role`](Role): what a role may. [`caller`](Caller): who asks, and how far their scope reaches.
//! - [`tokens`](Tokens): bearer tokens, kept as digests ([`digest`](TokenDigest)); [`tokens_file`](FromFile): where they are kept.
//! - [`quota`](Quota): how often a caller may ask. [`authenticated`](Authenticated): the caller of a request of the API.
//! - [`audit`](Audit): every action of an operator, written down before it is done, in [`audit_file`].

mod audit;
mod audit_file;
mod authenticated;
mod caller;
mod digest;
mod quota;
mod role;
mod tokens;
mod tokens_file;

pub use audit::{Action, Audit, Entry, Noted};
pub use authenticated::Authenticated;
pub use caller::Caller;
pub use digest::{TokenDigest, new_token};
pub use quota::Quota;
pub use role::{Need, Role};
pub use tokens::{Known, Tokens};
pub use tokens_file::FromFile;
