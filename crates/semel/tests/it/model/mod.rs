//! Three callers, one key, an unkind network: every order of events within bounds, through the real machine.
//!
//! [`book`] asks the machine, [`moves`] says what can happen, [`rules`] what must hold, and [`search`] goes
//! through all of it. Every promise has a world that breaks it, which the search must find.

mod book;
mod moves;
mod promises;
mod rules;
mod search;
mod state;
