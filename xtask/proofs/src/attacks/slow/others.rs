//! Those who do not dawdle: each must be served soon.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use test_http::Client;
use tokio::time::{Instant, timeout};

use crate::attacks::ask::{self, Framing};
use crate::attacks::race;
use crate::attacks::waiting::post;

/// How soon.
pub(super) const SOON: Duration = Duration::from_secs(2);
const AT_ONCE: usize = 4;

/// The longest that one of so many had to wait, half of them under keys; an error if one was not served soon.
pub(super) async fn served(target: SocketAddr, count: usize) -> Result<Duration> {
    let request = |n: usize| {
        if n.is_multiple_of(2) {
            ask::look("/look", "caller-in-a-hurry")
        } else {
            ask::charge("/charges", "caller-in-a-hurry", &ask::new_key("soon"), Framing::Length)
        }
    };
    all_served(target, (0..count).map(request), 201).await
}

/// The longest that one of the claim server's callers had to wait: half of them look, and half claim.
pub(super) async fn served_claims(target: SocketAddr, count: usize) -> Result<Duration> {
    let request = |n: usize| {
        if n.is_multiple_of(2) {
            return b"GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_vec();
        }
        post("/v1/claim", &format!(r#"{{"operation":"charge","name":"{}"}}"#, ask::new_key("soon")))
    };
    all_served(target, (0..count).map(request), 200).await
}

async fn all_served(
    target: SocketAddr,
    requests: impl Iterator<Item = Vec<u8>>,
    status: u16,
) -> Result<Duration> {
    let one = |request: Vec<u8>| async move {
        let started_at = Instant::now();
        let asked = async { Client::try_connect(target).await?.try_ask(&request).await };
        let answer = timeout(SOON, asked).await;
        Ok::<_, anyhow::Error>((answer??, started_at.elapsed()))
    };
    let mut longest = Duration::ZERO;
    for asked in race::all(AT_ONCE, requests.map(one), &|| ()).await? {
        let (answer, took) = asked?;
        ensure!(answer.status == status, "somebody in a hurry got {} {:?}", answer.status, answer.code());
        longest = longest.max(took);
    }
    Ok(longest)
}
