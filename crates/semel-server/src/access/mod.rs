//! Who asks, what they may, how often, and the note of what they did.
//!
//! - [`role`](Role): what a role may. [`caller`](Caller): who asks, and how far their scope reaches.
//! - [`tokens`](Tokens): bearer tokens, kept as digests. [`quota`](Quota): how often a caller may ask.
//! - [`audit`](Audit): every action of an operator, written down before it is done.

mod asker;
mod audit;
mod caller;
mod quota;
mod role;
mod tokens;

pub use asker::Asker;
pub use audit::{Action, Audit, Entry, Result as Noted};
pub use caller::Caller;
pub use quota::Quota;
pub use role::{Need, Role};
pub use tokens::Tokens;
