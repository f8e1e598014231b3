//! A client that pays once, whatever it takes: it asks again with the same key until it has an answer. Each request has a
//! connection of its own, which the client may leave at any moment.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::dice::{Dice, Patience};

/// What every payment is about.
const CENTS: u64 = 4_200;
/// Before the first retry, without a `Retry-After`; twice as long before each further one, up to `PAUSE_MAX`.
const PAUSE: Duration = Duration::from_millis(30);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// With the pauses between them, longer than a proxy takes to start again.
const TRIES_MAX: u64 = 60;
/// How long a client that hangs up waits before it does: long enough for its request to arrive, and too short for an answer.
const GIVES_UP_AFTER: Duration = Duration::from_millis(5);

/// What clients counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(pub(super) BTreeMap<Seen, u64>);

/// What a client counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Seen {
    /// A payment that was wanted.
    Wanted,
    /// A request for it.
    Sent,
    /// A request that repeated an earlier one.
    Retried,
    /// The client left before it was answered.
    HungUp,
    /// An answer that was sent, and lost on its way.
    Lost,
    /// A connection that the other side dropped.
    Dropped,
    /// 201, from a run.
    Paid,
    /// 201, from the store.
    Replayed,
    /// 409: it still runs.
    ToldToWait,
    /// 409: nobody knows how it ended, and a person must look.
    Held,
    /// 5xx.
    Failed,
    /// A key that was used again for another amount.
    Reused,
    /// The same, and it was refused.
    Refused,
}

impl Tally {
    pub(super) fn of(&self, what: Seen) -> u64 {
        self.0.get(&what).copied().unwrap_or_default()
    }

    pub(super) fn count(&mut self, what: Seen) {
        self.add(&Self([(what, 1)].into()));
    }

    /// The tally of several clients.
    pub(super) fn add(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            let mine = self.0.entry(*what).or_default();
            *mine = mine.saturating_add(*times);
        }
    }
}

/// Pays, and says what it took.
pub(super) async fn pay(to: SocketAddr, payment: u64, dice: Dice) -> Tally {
    let mut tally = Tally::default();
    tally.count(Seen::Wanted);
    let settled = ask_until_told(to, &Ask { payment, cents: CENTS }, dice, &mut tally).await;
    if settled && dice.reuses_key(payment) {
        tally.count(Seen::Reused);
        let other = Ask { payment, cents: CENTS.saturating_add(1) };
        if is_refused(to, &other).await {
            tally.count(Seen::Refused);
        }
    }
    tally
}

/// Sends a payment until there is an answer, and returns whether that refuses it.
async fn is_refused(to: SocketAddr, ask: &Ask) -> bool {
    for _ in 1..=TRIES_MAX {
        if let Heard::Answer(answer) = send(to, ask, Patience::Waits).await {
            return answer.status.is_client_error();
        }
        tokio::time::sleep(PAUSE_MAX).await;
    }
    false
}

/// Whether there was an answer that ends the matter.
async fn ask_until_told(to: SocketAddr, ask: &Ask, dice: Dice, tally: &mut Tally) -> bool {
    let mut pause = PAUSE;
    for attempt in 1..=TRIES_MAX {
        tally.count(Seen::Sent);
        if attempt > 1 {
            tally.count(Seen::Retried);
        }
        let (seen, retry_after) = match send(to, ask, dice.patience(ask.payment, attempt)).await {
            Heard::Answer(answer) => (seen(&answer), answer.retry_after),
            Heard::HungUp => (Seen::HungUp, None),
            Heard::Lost => (Seen::Lost, None),
            Heard::Nothing => (Seen::Dropped, None),
        };
        tally.count(seen);
        if matches!(seen, Seen::Paid | Seen::Replayed | Seen::Held) {
            return true;
        }
        tokio::time::sleep(retry_after.unwrap_or(pause)).await;
        pause = pause.saturating_mul(2).min(PAUSE_MAX);
    }
    false
}

fn seen(answer: &Answer) -> Seen {
    match (answer.status.as_u16(), answer.code.as_deref()) {
        (201, _) if answer.replayed => Seen::Replayed,
        (201, _) => Seen::Paid,
        // With a time to ask again, a probe is under way: only without one is it for a person.
        (409, Some("outcome_held")) if answer.retry_after.is_none() => Seen::Held,
        (409, _) => Seen::ToldToWait,
        _ => Seen::Failed,
    }
}

/// A payment, as it is sent each time.
#[derive(Clone, Debug)]
struct Ask {
    payment: u64,
    cents: u64,
}

/// What a client was told.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    status: StatusCode,
    /// The machine-readable word of a refusal.
    code: Option<String>,
    replayed: bool,
    retry_after: Option<Duration>,
}

/// What came of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Heard {
    Answer(Answer),
    /// The client left before there was an answer.
    HungUp,
    /// There was an answer, and the client lost it.
    Lost,
    /// The other side left.
    Nothing,
}

/// Sends a payment, and listens as patiently as it is told to.
async fn send(to: SocketAddr, ask: &Ask, patience: Patience) -> Heard {
    let exchange = exchange(to, ask, patience);
    let heard = match patience {
        // Dropping the exchange closes its connection.
        Patience::HangsUp => tokio::time::timeout(GIVES_UP_AFTER, exchange).await,
        Patience::Waits | Patience::LosesAnswer => Ok(exchange.await),
    };
    heard.map_or(Heard::HungUp, |heard| heard.unwrap_or(Heard::Nothing))
}

async fn exchange(to: SocketAddr, ask: &Ask, patience: Patience) -> Result<Heard> {
    let stream = TcpStream::connect(to).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let talk = async {
        let response = sender.send_request(request(to, ask)?).await?;
        Ok(match patience {
            Patience::Waits => Heard::Answer(heard(response).await?),
            Patience::HangsUp | Patience::LosesAnswer => Heard::Lost,
        })
    };
    let mut talk = std::pin::pin!(talk);
    tokio::select! {
        heard = &mut talk => heard,
        // The other side is done with the connection; what it said may still be here.
        ended = connection => { ended?; talk.await }
    }
}

fn request(to: SocketAddr, Ask { payment, cents }: &Ask) -> Result<Request<Full<Bytes>>> {
    let body = serde_json::json!({ "payment": format!("p-{payment}"), "cents": cents }).to_string();
    Ok(Request::post("/payments")
        .header("host", to.to_string())
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer customer-{}", payment % 10))
        .header("idempotency-key", format!("\"payment-{payment}\""))
        .body(Full::new(Bytes::from(body)))?)
}

async fn heard(response: Response<Incoming>) -> Result<Answer> {
    let (head, body) = response.into_parts();
    let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let replayed = text("idempotent-replayed") == Some("true");
    let retry_after = text("retry-after").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    let body = body.collect().await?.to_bytes();
    let code = serde_json::from_slice::<Value>(&body).ok();
    let code = code.and_then(|problem| problem.get("code")?.as_str().map(ToOwned::to_owned));
    Ok(Answer { status: head.status, code, replayed, retry_after })
}
