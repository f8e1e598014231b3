//! A client that sends one charge after the other, each under a key of its own, and each again until there is an answer.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use test_http::{Answer, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::attacks::ask::{self, Framing};

/// How long a client waits before it sends a request again that got no answer.
const BETWEEN_ASKS: Duration = Duration::from_millis(20);
/// How long a client may have to wait for an answer at most: several pauses between probes.
const PATIENCE: Duration = Duration::from_secs(90);
/// No client waits longer for one response: a proxy that dies closes its connections at once.
const RESPONSE: Duration = Duration::from_secs(20);
const CALLER: &str = "caller-of-the-killed";

/// A key, and what its client was answered at last.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) key: String,
    pub(super) status: u16,
    pub(super) code: Option<String>,
    pub(super) body: Vec<u8>,
    /// How often it was sent.
    pub(super) sent: u32,
}

/// Where the proxy is now; `None` once there will be none any more.
pub(super) type ProxyAddress = watch::Receiver<Option<SocketAddr>>;

/// Charges under one key after the other until the load is over. The last one is brought to its end.
pub(super) async fn charge_on(address: ProxyAddress, is_over: watch::Receiver<bool>) -> Result<Vec<Ended>> {
    let mut ended = Vec::new();
    while !*is_over.borrow() {
        ended.push(charge(&address, ask::new_key("charge")).await?);
    }
    Ok(ended)
}

/// Sends a charge until there is an answer that is final: a response of the service, or that the key is held for a person.
pub(super) async fn charge(address: &ProxyAddress, key: String) -> Result<Ended> {
    let started_at = Instant::now();
    let mut sent = 0;
    while started_at.elapsed() < PATIENCE {
        sent += 1;
        if let Some(answer) = once(address, &key).await
            && is_final(&answer)
        {
            let code = answer.code();
            return Ok(Ended { key, status: answer.status, code, body: answer.body, sent });
        }
        sleep(BETWEEN_ASKS).await;
    }
    bail!("{key} has no answer after {} s and {sent} requests", PATIENCE.as_secs())
}

/// One try. `None` if no answer came.
async fn once(address: &ProxyAddress, key: &str) -> Option<Answer> {
    let target = (*address.borrow())?;
    let mut client = Client::try_connect(target).await.ok()?;
    let request = ask::charge("/charges", CALLER, key, Framing::Length);
    tokio::time::timeout(RESPONSE, client.try_ask(&request)).await.ok()?.ok()
}

/// A held key with `Retry-After` may still be found out about by a probe; one without waits for a person.
fn is_final(answer: &Answer) -> bool {
    match answer.code().as_deref() {
        Some("outcome_held") => answer.header("retry-after").is_none(),
        Some(_) => false,
        None => true,
    }
}
