//! What the command line and the servers share, on real stores.

#![cfg(test)]

mod operator_actions;
