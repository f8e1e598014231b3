//! What the command line and the servers share, on real stores.

#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "what overflows fails a test, as it should")]

mod operator_actions;
