//! Who asks, what they may, how often, and the note of what they did.
//!
//! - [`caller`](Caller): who asks, what their role may, and how far their scope reaches. [`quota`](Quota): how often they may.
//! - [`tokens`](Tokens): bearer tokens, kept as digests. [`authenticated`](Authenticated): the caller of a request of the API.
//! - [`Audit`]: every action of an operator, written down before it is done.

mod authenticated;
mod caller;
mod quota;
mod tokens;

pub use authenticated::Authenticated;
pub use caller::{Caller, Need, Role};
pub use quota::Quota;
pub use semel_ops::operator::{Action, Audit, Entry, Noted};
pub use tokens::{FromFile, Known, TokenDigest, Tokens, new_token};
