//! Those who do not dawdle: each must be served soon.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, timeout};

use crate::ask::{self, Framing};
use crate::race;
use crate::wire::Connection;

/// How soon.
pub(super) const SOON: Duration = Duration::from_secs(2);
const AT_ONCE: usize = 4;

/// The longest that one of so many had to wait, half of them under keys; an error if one was not served soon.
pub(super) async fn served(target: SocketAddr, count: usize) -> Result<Duration> {
    let one = |n: usize| async move {
        let request = if n.is_multiple_of(2) {
            ask::look("/look", "caller-in-a-hurry")
        } else {
            ask::charge("/charges", "caller-in-a-hurry", &ask::new_key("soon"), Framing::Length)
        };
        let started_at = Instant::now();
        let asked = async { Connection::open(target).await?.ask(&request).await };
        let answer = timeout(SOON, asked).await;
        Ok::<_, anyhow::Error>((answer??, started_at.elapsed()))
    };
    let mut longest = Duration::ZERO;
    for asked in race::all(AT_ONCE, (0..count).map(one), &|| ()).await? {
        let (answer, took) = asked?;
        ensure!(answer.status == 201, "somebody in a hurry got {} {:?}", answer.status, answer.code());
        longest = longest.max(took);
    }
    Ok(longest)
}
