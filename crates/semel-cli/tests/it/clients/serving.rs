//! `semel serve`, as people start it.

use std::process::Command;

use test_http::Server;

use crate::binary::{run, semel};
use crate::place::Place;

/// Starts on a free port, for everybody on this machine.
pub(super) fn serve(place: &Place) -> Server {
    start(place, semel())
}

/// The same for a token that may work in one scope: the token.
pub(super) fn serve_scope(place: &Place, scope: &str) -> (Server, String) {
    let new = run(&format!("token new --name tests --role work --scope {scope}"));
    let mut command = semel();
    // What is to be appended to a file of tokens is a file of tokens.
    command.env("SEMEL_TOKENS", &new.err);
    (start(place, command), new.fine().trim().to_owned())
}

fn start(place: &Place, mut command: Command) -> Server {
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", place.url()]);
    Server::from_command(&mut command).expect("the server starts")
}
