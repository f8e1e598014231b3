//! A payment API as there are many: it charges whenever it is asked to, and has bad moments. It notes the key of a request
//! as a reference that charges can be looked up by, and never looks there itself.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::dice::{Dice, Mood};

/// How long a charge takes, from the booking to the answer.
const WORK: Duration = Duration::from_millis(10);

/// What the API counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Books {
    /// How often each payment was asked for.
    seen: BTreeMap<String, u64>,
    /// How often each was charged.
    charged: BTreeMap<String, u64>,
    /// 503s, before anything was charged.
    pub(super) overworked: u64,
    /// Connections that were dropped after the charge.
    pub(super) hung_up: u64,
    /// How often a charge was looked up by its reference.
    pub(super) lookups: u64,
    /// The answer to each charge, by its reference.
    receipts: BTreeMap<String, Value>,
}

/// Which charges the proxy does not survive.
#[derive(Debug)]
pub(super) struct Kills {
    payments: BTreeSet<u64>,
    wanted: mpsc::UnboundedSender<()>,
}

impl Kills {
    /// The proxy is to be killed during the charges of these payments: the receiver gets a word at each.
    pub(super) fn during(payments: BTreeSet<u64>) -> (Self, mpsc::UnboundedReceiver<()>) {
        let (wanted, receiver) = mpsc::unbounded_channel();
        (Self { payments, wanted }, receiver)
    }

    /// Whether the proxy is killed now, in the middle of this charge.
    fn strike(&mut self, payment: u64) -> bool {
        self.payments.remove(&payment) && self.wanted.send(()).is_ok()
    }
}

impl Books {
    /// Books in which these payments were charged so many times.
    #[cfg(test)]
    pub(super) fn of(charged: &[(&str, u64)]) -> Self {
        let charged = charged.iter().map(|(payment, times)| ((*payment).to_owned(), *times)).collect();
        Self { charged, ..Self::default() }
    }

    /// Counts a request for a payment, and returns how many there were.
    fn visit(&mut self, payment: &str) -> u64 {
        let visits = self.seen.entry(payment.to_owned()).or_default();
        *visits = visits.saturating_add(1);
        *visits
    }

    /// Charges, and returns the receipt.
    fn book(&mut self, payment: &str, asked: &Value, reference: Option<String>) -> Value {
        let times = self.charged.entry(payment.to_owned()).or_default();
        *times = times.saturating_add(1);
        let charge = format!("ch_{}", self.charges());
        let receipt = json!({ "charge": charge, "payment": payment, "cents": asked.get("cents") });
        if let Some(reference) = reference {
            self.receipts.insert(reference, receipt.clone());
        }
        receipt
    }

    pub(super) fn requests(&self) -> u64 {
        self.seen.values().sum()
    }

    pub(super) fn charges(&self) -> u64 {
        self.charged.values().sum()
    }

    /// How many payments were charged more than once.
    pub(super) fn charged_again(&self) -> u64 {
        self.charged.values().filter(|times| **times > 1).count() as u64
    }
}

/// A running API; stops when it is dropped.
pub(super) struct Bank {
    address: SocketAddr,
    api: Arc<Api>,
    _serving: JoinSet<()>,
}

/// What every request meets.
struct Api {
    dice: Dice,
    books: Mutex<Books>,
    kills: Option<Mutex<Kills>>,
}

impl Bank {
    pub(super) async fn open(dice: Dice, kills: Option<Kills>) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen on 127.0.0.1")?;
        let address = listener.local_addr()?;
        let api = Arc::new(Api { dice, books: Mutex::default(), kills: kills.map(Mutex::new) });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&api)));
        Ok(Self { address, api, _serving: serving })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn books(&self) -> Books {
        locked(&self.api.books).clone()
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, api: Arc<Api>) {
    let mut connections = JoinSet::new();
    loop {
        // Nothing is done about a connection that could not be accepted: its client tries again, as all do here.
        if let Ok((stream, _)) = listener.accept().await {
            connections.spawn(converse(stream, Arc::clone(&api)));
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(stream: TcpStream, api: Arc<Api>) {
    let service = service_fn(move |request| {
        let api = Arc::clone(&api);
        async move { api.answer(request).await }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // It fails whenever one side hangs up, which is what this is about.
    let _ = connection.await;
}

/// What ends a connection without an answer.
const HUNG_UP: &str = "hung up";

impl Api {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, &'static str> {
        if request.method() == http::Method::GET {
            return Ok(self.look_up(request.uri()));
        }
        let reference = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok());
        let reference = reference.map(|key| key.trim_matches('"').to_owned());
        let Ok(body) = request.into_body().collect().await else { return Err(HUNG_UP) };
        let Ok(asked) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
            let error = "send JSON: {\"payment\": \"p-1\", \"cents\": 4200}";
            return Ok(respond(StatusCode::BAD_REQUEST, &json!({ "error": error })));
        };
        self.charge(&asked, reference).await
    }

    /// The charge with this reference, or how many there are.
    fn look_up(&self, target: &http::Uri) -> Response<Full<Bytes>> {
        let mut books = locked(&self.books);
        let Some(reference) = target.query().and_then(|query| query.strip_prefix("key=")) else {
            return respond(StatusCode::OK, &json!({ "charges": books.charges() }));
        };
        books.lookups = books.lookups.saturating_add(1);
        match books.receipts.get(reference) {
            Some(receipt) => respond(StatusCode::CREATED, receipt),
            None => respond(StatusCode::NOT_FOUND, &json!({ "error": "no such charge" })),
        }
    }

    async fn charge(
        &self,
        asked: &Value,
        reference: Option<String>,
    ) -> Result<Response<Full<Bytes>>, &'static str> {
        let payment = asked.get("payment").and_then(Value::as_str).unwrap_or("unnamed");
        // Only the payments of the demo have a number; what people try by hand goes well.
        let number = payment.strip_prefix("p-").and_then(|number| number.parse::<u64>().ok());
        let visit = locked(&self.books).visit(payment);
        let mood = number.map_or(Mood::Fine, |number| self.dice.mood(number, visit));
        if mood == Mood::Overworked {
            let mut books = locked(&self.books);
            books.overworked = books.overworked.saturating_add(1);
            let error = "no time; nothing was charged";
            return Ok(respond(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": error })));
        }
        let receipt = locked(&self.books).book(payment, asked, reference);
        if number.is_some_and(|number| self.strikes(number)) {
            // The proxy that waits for the answer is being killed, which closes this connection and ends this future.
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(WORK).await;
        if mood == Mood::Forgetful {
            let mut books = locked(&self.books);
            books.hung_up = books.hung_up.saturating_add(1);
            return Err(HUNG_UP);
        }
        Ok(respond(StatusCode::CREATED, &receipt))
    }

    fn strikes(&self, payment: u64) -> bool {
        self.kills.as_ref().is_some_and(|kills| locked(kills).strike(payment))
    }
}

fn respond(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{body}\n"))));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
