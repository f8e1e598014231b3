//! A client that pays once, whatever it takes: it asks again with the same key until it has an answer. Each request has a
//! connection of its own, which the client may leave at any moment.

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
/// Before a client asks again, if nobody says how long to wait.
const PAUSE: Duration = Duration::from_millis(30);
/// Nobody asks for ever.
const TRIES_MAX: u64 = 30;
/// How long a client that hangs up waits before it does: long enough for its request to arrive, and too short for an answer.
const GIVES_UP_AFTER: Duration = Duration::from_millis(5);

/// What clients counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Payments that were wanted.
    pub(super) wanted: u64,
    /// Requests for them.
    pub(super) sent: u64,
    /// Requests that repeated an earlier one.
    pub(super) retried: u64,
    /// Times that a client left before it was answered.
    pub(super) hung_up: u64,
    /// Answers that were sent, and lost on their way.
    pub(super) lost: u64,
    /// Connections that the other side dropped.
    pub(super) dropped: u64,
    /// 201, from a run.
    pub(super) paid: u64,
    /// 201, from the store.
    pub(super) replayed: u64,
    /// 409: it still runs.
    pub(super) told_to_wait: u64,
    /// 409: nobody knows how it ended, and a person must look.
    pub(super) held: u64,
    /// 5xx.
    pub(super) failed: u64,
    /// Keys that were used again for another amount.
    pub(super) reused: u64,
    /// Of those, how many were refused.
    pub(super) refused: u64,
    /// Payments that were never answered.
    pub(super) unanswered: u64,
}

/// Pays, and says what it took.
pub(super) async fn pay(to: SocketAddr, payment: u64, dice: Dice) -> Tally {
    let mut tally = Tally { wanted: 1, ..Tally::default() };
    let settled = ask_until_told(to, &Ask { payment, cents: CENTS }, dice, &mut tally).await;
    if !settled {
        tally.unanswered = 1;
    }
    if settled && dice.reuses_key(payment) {
        tally.reused = 1;
        let other = Ask { payment, cents: CENTS.saturating_add(1) };
        let answer = send(to, &other, Patience::Waits).await;
        let refused = matches!(&answer, Heard::Answer(answer) if answer.status.is_client_error());
        tally.refused = u64::from(refused);
    }
    tally
}

/// Whether there was an answer that ends the matter.
async fn ask_until_told(to: SocketAddr, ask: &Ask, dice: Dice, tally: &mut Tally) -> bool {
    for attempt in 1..=TRIES_MAX {
        count(&mut tally.sent);
        if attempt > 1 {
            count(&mut tally.retried);
        }
        let pause = match send(to, ask, dice.patience(ask.payment, attempt)).await {
            Heard::Answer(answer) => match noted(&answer, tally) {
                Next::Done => return true,
                Next::AskAgain => answer.retry_after.unwrap_or(PAUSE),
            },
            Heard::HungUp => noting(&mut tally.hung_up),
            Heard::Lost => noting(&mut tally.lost),
            Heard::Nothing => noting(&mut tally.dropped),
        };
        tokio::time::sleep(pause).await;
    }
    false
}

enum Next {
    Done,
    AskAgain,
}

fn noted(answer: &Answer, tally: &mut Tally) -> Next {
    let (counter, next) = match (answer.status.as_u16(), answer.code.as_deref()) {
        (201, _) if answer.replayed => (&mut tally.replayed, Next::Done),
        (201, _) => (&mut tally.paid, Next::Done),
        (409, Some("outcome_held")) => (&mut tally.held, Next::Done),
        (409, _) => (&mut tally.told_to_wait, Next::AskAgain),
        _ => (&mut tally.failed, Next::AskAgain),
    };
    count(counter);
    next
}

fn noting(counter: &mut u64) -> Duration {
    count(counter);
    PAUSE
}

fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}

impl Tally {
    /// The tally of several clients.
    pub(super) fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.wanted, other.wanted),
            (&mut self.sent, other.sent),
            (&mut self.retried, other.retried),
            (&mut self.hung_up, other.hung_up),
            (&mut self.lost, other.lost),
            (&mut self.dropped, other.dropped),
            (&mut self.paid, other.paid),
            (&mut self.replayed, other.replayed),
            (&mut self.told_to_wait, other.told_to_wait),
            (&mut self.held, other.held),
            (&mut self.failed, other.failed),
            (&mut self.reused, other.reused),
            (&mut self.refused, other.refused),
            (&mut self.unanswered, other.unanswered),
        ] {
            *mine = mine.saturating_add(theirs);
        }
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
