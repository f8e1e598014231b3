//! One request on one connection, which the client may leave at any moment.

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

use super::dice::Patience;

/// How long a client that hangs up waits before it does: long enough for its request to arrive, and too short for an answer.
const GIVES_UP_AFTER: Duration = Duration::from_millis(5);

/// A payment, as it is sent each time.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) payment: u64,
    pub(super) cents: u64,
}

/// What a client was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// The machine-readable word of a refusal.
    pub(super) code: Option<String>,
    pub(super) replayed: bool,
    pub(super) retry_after: Option<Duration>,
}

/// What came of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Answer(Answer),
    /// The client left before there was an answer.
    HungUp,
    /// There was an answer, and the client lost it.
    Lost,
    /// The other side left.
    Nothing,
}

/// Sends a payment, and listens as patiently as it is told to.
pub(super) async fn send(to: SocketAddr, ask: &Ask, patience: Patience) -> Heard {
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
