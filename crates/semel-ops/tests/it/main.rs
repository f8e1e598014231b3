//! What the command line and the servers share, on real stores.

#![cfg(test)]

mod lookup;
mod operator_actions;
mod record_json;
