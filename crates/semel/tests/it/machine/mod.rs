//! The machine, enumerated: every state, ask and moment against a table that is written row by row.
//!
//! [`case`] holds what a ruling depends on, [`expect`] what each kind of write must look like in every
//! field, and the other files one table each.

mod amend;
mod case;
mod claim;
mod expect;
mod proof;
mod record_once;
mod settle;
mod shown;
