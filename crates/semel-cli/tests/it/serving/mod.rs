//! The running claim server and its dashboard: in a real browser, under attackers' strings, by role and scope, and fuzzed.

mod accessibility;
mod corpus;
mod forms;
mod fuzzed;
mod held_charge;
mod hostile;
mod live;
mod matrix;
mod pages;
mod table;
