//! The same before the claim server.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use test_http::Server;

use super::attack::{Slowed, Target, timeouts};
use super::others::served_claims;
use crate::attacks::limits;
use crate::attacks::race::{self, Step};

/// So many connections dawdle before the binary's claim server.
pub fn slow_server(binary: &Path, count: usize, step: Step<'_>) -> Result<Slowed> {
    limits::raise(count)?;
    let server = Server::start_with(binary, "memory:", &[], &config(count, ""))?;
    let few =
        Server::start_with(binary, "memory:", &[], &config(FEW, &format!("connections_max = {FEW}\n")))?;
    race::runtime()?.block_on(async {
        let mut slowed = claims(&server).attack(count, step).await?;
        slowed.caught = claims(&few).control(FEW).await?;
        Ok(slowed)
    })
}

/// How few connections the control allows.
const FEW: usize = 32;

fn config(count: usize, bounds: &str) -> String {
    let timeouts = timeouts(count).replace("[timeouts]", "[server.timeouts]");
    format!("[server.bounds]\n{bounds}{timeouts}")
}

fn claims(server: &Server) -> Target<'_, impl AsyncFn(SocketAddr, usize) -> Result<Duration>> {
    Target { address: server.address, path: "/v1/claim", program: server, served: served_claims }
}
