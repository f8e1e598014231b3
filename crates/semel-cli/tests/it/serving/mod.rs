//! The running claim server and its dashboard: in a real browser, under attackers' strings, by role and scope, and fuzzed.

mod corpus;
mod forms;
mod fuzzed;
mod hostile;
mod live;
mod matrix;
mod pages;
mod table;
