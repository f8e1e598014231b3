//! All shapes, before the proxy and before the control.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};

use super::relay::Relay;
use super::shape::{REQUEST_BYTES_MAX, Shape};
use super::{exchange, judge, shapes};
use crate::attacks::race::{self, Step};
use test_http::{Ledger, Proxy, Upstream};

const AT_ONCE: usize = 16;
/// How many shapes the control gets.
const FOR_CONTROL: usize = 60;
/// What every target has that was sent.
const FAMILIES: [&str; 5] = ["/shape/", "/probe/", "/after/", "/first/", "/slow/"];
/// How many faults are told.
const TOLD: usize = 100;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Smuggled {
    /// How many shapes were sent, each with a probe after it.
    pub shapes: usize,
    /// How many of them were refused, or their connection closed without a word.
    pub refused: usize,
    /// How many were answered.
    pub answered: usize,
    /// The control: how many of so many shapes a relay that trusts lengths read in two ways.
    pub caught: (usize, usize),
}

impl fmt::Display for Smuggled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shapes, refused, answered, caught: (caught, of) } = self;
        write!(
            f,
            "{shapes} shapes: none was read in two ways ({refused} refused, {answered} answered); a relay that trusts \
             lengths was caught with {caught} of {of}"
        )
    }
}

/// What came of one shape.
struct Judged {
    name: String,
    faults: Vec<String>,
    is_refused: bool,
}

/// Sends so many shapes through the binary's proxy; more than there are means all of them several times.
pub fn smuggling(binary: &Path, count: usize, step: Step<'_>) -> Result<Smuggled> {
    race::runtime()?.block_on(async {
        let upstream = Upstream::recording().await;
        let rules = format!("[rules]\nrequest_bytes_max = {REQUEST_BYTES_MAX}\n[timeouts]\nhead = \"3s\"\nbody_idle = \"3s\"\n");
        let mut proxy = Proxy::start(binary, upstream.address, "memory:", &rules).await?;
        let judged = attack(proxy.address, &upstream.ledger, shapes::some(count), step).await?;
        ensure!(proxy.is_running(), "the proxy ended:\n{}", proxy.tail());
        let wrong: Vec<_> = judged.iter().filter(|judged| !judged.faults.is_empty()).collect();
        if !wrong.is_empty() {
            let told = wrong.iter().take(TOLD).map(|judged| format!("{}\n    {}", judged.name, judged.faults.join("\n    ")));
            bail!("{} of {} shapes:\n{}", wrong.len(), judged.len(), told.collect::<Vec<_>>().join("\n"));
        }
        let strangers = strangers(&upstream.ledger);
        ensure!(strangers.is_empty(), "the service was asked for what nobody sent: {strangers:?}");
        let caught = control().await?;
        ensure!(caught > 0, "the control was not caught: a relay that trusts lengths passed");
        let refused = judged.iter().filter(|judged| judged.is_refused).count();
        Ok(Smuggled { shapes: judged.len(), refused, answered: judged.len() - refused, caught: (caught, FOR_CONTROL) })
    })
}

/// What the service was asked for that is of no shape.
fn strangers(ledger: &Ledger) -> Vec<String> {
    let is_known = |target: &str| FAMILIES.iter().any(|family| target.contains(family));
    let targets = ledger.seen("").into_iter().map(|seen| seen.target);
    targets.filter(|target| target.contains("/smuggled/") || !is_known(target)).collect()
}

/// How many shapes a relay that trusts lengths reads in two ways.
async fn control() -> Result<usize> {
    let upstream = Upstream::recording().await;
    let relay = Relay::start(upstream.address).await?;
    let judged = attack(relay.address, &upstream.ledger, shapes::some(FOR_CONTROL), &|| ()).await?;
    // Only what is a desync without doubt: the service was asked for what nobody sent.
    let is_desync = |fault: &String| fault.contains("asked for /smuggled");
    Ok(judged.iter().filter(|judged| judged.faults.iter().any(is_desync)).count())
}

async fn attack(
    target: SocketAddr,
    ledger: &Arc<Ledger>,
    shapes: Vec<Shape>,
    step: Step<'_>,
) -> Result<Vec<Judged>> {
    let one = |shape: Shape| {
        let ledger = Arc::clone(ledger);
        async move {
            let exchanged = exchange::exchange(target, &ledger, &shape).await;
            let seen = ledger.seen(&shape.mark);
            match exchanged {
                Ok(exchange) => {
                    let is_refused = exchange.answers.first().is_none_or(|answer| answer.status >= 400);
                    let faults = judge::faults(&shape, &exchange, &seen);
                    Judged { name: shape.name, faults, is_refused }
                }
                Err(error) => {
                    Judged { name: shape.name, faults: vec![format!("{error:#}")], is_refused: true }
                }
            }
        }
    };
    race::all(AT_ONCE, shapes.into_iter().map(one), step).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_that_trusts_lengths_is_caught() {
        let caught = race::runtime().unwrap().block_on(control()).unwrap();
        assert!(caught > 5, "{caught}");
    }
}
