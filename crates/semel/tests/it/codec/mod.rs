//! Records as bytes: what was written once is read for ever, and nothing else is.

mod fixtures;
mod fuzz;
mod round_trip;
mod samples;
mod stored;
mod strict;
