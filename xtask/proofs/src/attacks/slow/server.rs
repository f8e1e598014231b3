//! The same before the claim server.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::attack::{
    BYTES_BESIDE_MAX, BYTES_EACH_MAX, Crowd, OTHERS, SLACK, Slowed, closed, proxy_waits, timeouts,
};
use super::dawdler::source;
use super::others::served_claims;
use crate::attacks::limits;
use crate::attacks::race::{self, Step};
use test_http::Server;

const CLAIM: &str = "/v1/claim";

/// So many connections dawdle before the binary's claim server.
pub fn slow_server(binary: &Path, count: usize, step: Step<'_>) -> Result<Slowed> {
    limits::raise(count)?;
    let server = Server::start_with(binary, "memory:", &[], &config(count, ""))?;
    let few =
        Server::start_with(binary, "memory:", &[], &config(FEW, &format!("connections_max = {FEW}\n")))?;
    race::runtime()?.block_on(async {
        let mut slowed = attack(&server, count, step).await?;
        slowed.caught = control(&few).await?;
        Ok(slowed)
    })
}

/// How few connections the control allows.
const FEW: usize = 32;

fn config(count: usize, bounds: &str) -> String {
    let timeouts = timeouts(count).replace("[timeouts]", "[server.timeouts]");
    format!("[server.bounds]\n{bounds}{timeouts}")
}

async fn attack(server: &Server, count: usize, step: Step<'_>) -> Result<Slowed> {
    served_claims(server.address, 20).await?;
    let (before, _) = server.memory()?;
    let mut crowd = Crowd::start(server.address, CLAIM, count, source);
    crowd.opened(count, step).await?;
    let longest = served_claims(server.address, OTHERS).await?;
    let (_, most) = server.memory()?;
    let memory_max = BYTES_BESIDE_MAX + BYTES_EACH_MAX * count as u64;
    ensure!(most <= memory_max, "{most} bytes of memory, and {memory_max} are allowed");
    let within = proxy_waits(count) * 2 + SLACK;
    let ends = crowd.ended(within).await?;
    let mut slowed = Slowed {
        slow: count,
        served: OTHERS,
        longest,
        memory: (before, most),
        memory_max,
        ..Slowed::default()
    };
    slowed.closed_after =
        closed(&ends, within).with_context(|| format!("meanwhile {}", slowed.meanwhile()))?;
    Ok(slowed)
}

/// Where connections are few, others must be seen not to be served.
async fn control(server: &Server) -> Result<String> {
    let mut crowd = Crowd::start(server.address, CLAIM, FEW * 2, source);
    crowd.opened(FEW * 2, &|| ()).await?;
    match served_claims(server.address, 8).await {
        Ok(_) => anyhow::bail!("the control was not caught: others were served without a free connection"),
        Err(error) => {
            drop(crowd.ended(Duration::ZERO).await?);
            Ok(format!("{error:#}"))
        }
    }
}
