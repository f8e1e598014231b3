//! The five systems that semel replaces: what each of them does, and what none of them must do again.

mod allsource;
mod bloccs;
mod cratestack;
mod liminal;
mod tandem;
