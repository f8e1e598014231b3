//! A client hangs up at each byte of a request and of its answer, and asks again under the same key until it knows.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_http::{Answer, Client, Goodbye, Ledger, Proxy, Upstream};
use tokio::time::{Instant, sleep};

use crate::attacks::ask::{self, Framing};
use crate::attacks::race::{self, Step};

/// How long the service takes: long enough to be left while it works.
const WORK: Duration = Duration::from_millis(5);
const AT_ONCE: usize = 32;
/// How long a client asks again before it gives up, and how often.
const PATIENCE: Duration = Duration::from_secs(20);
const BETWEEN_ASKS: Duration = Duration::from_millis(5);
const PATH: &str = "/charges";
const CALLER: &str = "caller-of-disconnects";

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disconnected {
    /// How often a client hung up.
    pub cuts: usize,
    /// How many boundaries of bytes there are, in requests and in the answer.
    pub boundaries: usize,
    /// How many retries ran for the first time.
    pub ran: usize,
    /// How many retries were replays.
    pub replayed: usize,
    /// The control: how many keys the bare service was called for twice.
    pub twice_without: usize,
}

impl fmt::Display for Disconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cuts, boundaries, ran, replayed, twice_without } = self;
        write!(
            f,
            "{cuts} clients hung up over {boundaries} boundaries: no key was called for twice; {ran} retries ran first, \
             {replayed} were replays; without the proxy {twice_without} keys were called for twice"
        )
    }
}

/// Where and how one client hangs up.
#[derive(Clone, Copy, Debug)]
struct Cut {
    framing: Framing,
    /// How many bytes of the request are sent.
    sent: usize,
    /// How many bytes of the answer are read.
    read: usize,
    goodbye: Goodbye,
    /// Whether another request was answered on this connection before.
    kept_alive: bool,
}

/// Hangs up `count` times before the binary's proxy, and as often before the bare service.
pub fn disconnects(binary: &Path, count: usize, step: Step<'_>) -> Result<Disconnected> {
    race::runtime()?.block_on(async {
        let upstream = Upstream::counting(WORK).await;
        let proxy = Proxy::start(binary, upstream.address, "memory:", "").await?;
        let (cuts, boundaries) = cuts(proxy.address, count).await?;
        let retries = attack(proxy.address, &upstream.ledger, cuts, step).await?;
        for retry in &retries {
            retry.judge()?;
        }
        let bare = Upstream::counting(WORK).await;
        let (cuts, _) = self::cuts(bare.address, (count / 10).max(20)).await?;
        let unsafe_ones = attack(bare.address, &bare.ledger, cuts, &|| ()).await?;
        let twice_without = unsafe_ones.iter().filter(|retry| retry.judge().is_err()).count();
        ensure!(
            twice_without > 0,
            "the control was not caught: no key was called for twice without the proxy"
        );
        let replayed = retries.iter().filter(|retry| retry.answer.is_replay()).count();
        Ok(Disconnected { cuts: count, boundaries, ran: retries.len() - replayed, replayed, twice_without })
    })
}

/// `count` cuts, over every boundary in turn, and how many boundaries there are.
async fn cuts(target: SocketAddr, count: usize) -> Result<(Vec<Cut>, usize)> {
    let answered =
        Client::try_connect(target).await?.try_ask(&request(&ask::new_key("cut"), Framing::Length)).await?;
    let mut boundaries = Vec::new();
    for framing in [Framing::Length, Framing::Chunks] {
        let length = request(&ask::new_key("cut"), framing).len();
        boundaries.extend((0..=length).map(|sent| (framing, sent, 0)));
        let whole = (1..=answered.bytes).map(|read| (framing, length, read));
        boundaries.extend(whole.filter(|_| framing == Framing::Length));
    }
    let manners =
        [(Goodbye::Reset, false), (Goodbye::Fin, false), (Goodbye::Reset, true), (Goodbye::Fin, true)];
    // A stride that shares no factor with their number comes past every boundary, also when there are few cuts.
    let stride = (boundaries.len() * 5 / 8..boundaries.len())
        .find(|stride| has_no_factor_of(*stride, boundaries.len()))
        .unwrap_or(1);
    let cut = |n: usize| {
        let (framing, sent, read) = boundaries.get(n * stride % boundaries.len()).copied()?;
        let (goodbye, kept_alive) = manners.get((n + n / boundaries.len()) % manners.len()).copied()?;
        Some(Cut { framing, sent, read, goodbye, kept_alive })
    };
    Ok(((0..count).filter_map(cut).collect(), boundaries.len()))
}

fn has_no_factor_of(mut one: usize, mut other: usize) -> bool {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one == 1
}

fn request(key: &str, framing: Framing) -> Vec<u8> {
    ask::charge(PATH, CALLER, key, framing)
}

/// What a client knows that asked again, and what the service knows of its key.
struct Retry {
    cut: Cut,
    key: String,
    /// What was read before the client hung up.
    first: Vec<u8>,
    answer: Answer,
    serials: Vec<u64>,
    begun: u32,
}

async fn attack(
    target: SocketAddr,
    ledger: &Arc<Ledger>,
    cuts: Vec<Cut>,
    step: Step<'_>,
) -> Result<Vec<Retry>> {
    let one = |cut: Cut| {
        let ledger = Arc::clone(ledger);
        async move {
            let key = ask::new_key("cut");
            let first = leave(target, cut, &key).await.with_context(|| format!("{cut:?}"))?;
            let answer = insist(target, cut.framing, &key).await.with_context(|| format!("{cut:?}"))?;
            Ok((cut, key, first, answer, ledger))
        }
    };
    let done = race::all(AT_ONCE, cuts.into_iter().map(one), step).await?;
    // Only now: whatever the first request still did is done.
    sleep(WORK * 20).await;
    let known = |done: Result<_>| {
        let (cut, key, first, answer, ledger): (Cut, String, Vec<u8>, Answer, Arc<Ledger>) = done?;
        let serials = ledger.calls(&key).iter().map(|call| call.serial).collect();
        Ok(Retry { cut, first, answer, serials, begun: ledger.begun(&key), key })
    };
    done.into_iter().map(known).collect()
}

/// Sends so much of a request, reads so much of its answer, and leaves.
async fn leave(target: SocketAddr, cut: Cut, key: &str) -> Result<Vec<u8>> {
    let mut connection = Client::try_connect(target).await?;
    if cut.kept_alive {
        connection.try_ask(&ask::look("/before", CALLER)).await?;
    }
    let request = request(key, cut.framing);
    connection.try_write(request.get(..cut.sent).unwrap_or(&request)).await?;
    let first = if cut.read > 0 { connection.try_bytes(cut.read).await } else { Vec::new() };
    connection.hang_up(cut.goodbye).await;
    Ok(first)
}

/// Asks again until there is an answer.
async fn insist(target: SocketAddr, framing: Framing, key: &str) -> Result<Answer> {
    let started_at = Instant::now();
    loop {
        let answer = Client::try_connect(target).await?.try_ask(&request(key, framing)).await?;
        if answer.status != 409 || started_at.elapsed() > PATIENCE {
            return Ok(answer);
        }
        sleep(BETWEEN_ASKS).await;
    }
}

impl Retry {
    /// One call, and its outcome.
    fn judge(&self) -> Result<()> {
        let Self { cut, key, first, answer, serials, begun } = self;
        ensure!(answer.status == 201, "{cut:?} {key}: the retry got {} {:?}", answer.status, answer.code());
        ensure!(serials.len() == 1 && *begun == 1, "{cut:?} {key}: called {serials:?}, begun {begun}");
        let outcome = String::from_utf8_lossy(&answer.body);
        let wanted = serials.iter().all(|serial| outcome.starts_with(&format!("{{\"call\":{serial},")));
        ensure!(wanted, "{cut:?} {key}: the retry of call {serials:?} got {outcome}");
        let partly = Answer::parse(first).map(|answer| answer.body).unwrap_or_default();
        ensure!(answer.body.starts_with(&partly), "{cut:?} {key}: the first client saw another outcome");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_bare_service_is_caught_being_called_twice() {
        let bare = Upstream::counting(WORK).await;
        let (cuts, boundaries) = cuts(bare.address, 40).await.unwrap();
        assert!(cuts.len() == 40 && boundaries > 700, "{boundaries}");
        let retries = attack(bare.address, &bare.ledger, cuts, &|| ()).await.unwrap();
        assert!(retries.iter().filter(|retry| retry.judge().is_err()).count() > 5);
    }

    #[tokio::test]
    async fn as_many_cuts_as_boundaries_come_past_each_of_them() {
        let bare = Upstream::counting(WORK).await;
        let (_, boundaries) = cuts(bare.address, 1).await.unwrap();
        let (cuts, _) = cuts(bare.address, boundaries).await.unwrap();
        let mut places: Vec<_> =
            cuts.iter().map(|cut| (cut.framing == Framing::Chunks, cut.sent, cut.read)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), boundaries);
    }
}
