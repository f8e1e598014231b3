//! One action on many keys: those that were selected, or all that match a filter. A page with their number and a preview asks first.
//!
//! - `selectable`: a list in which keys can be selected. `ask`: what is asked for, as it stands in an address and in a form.
//! - `preview`: the keys that are meant. `question`: the page that asks. `act`: does it, and says what became of it.

mod act;
mod ask;
mod preview;
mod question;
mod selectable;

pub(in crate::dashboard) use act::act_on_many;
pub(in crate::dashboard) use question::confirm_many;
pub(in crate::dashboard) use selectable::{select, select_all, selectable};
