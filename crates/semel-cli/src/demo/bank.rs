//! A payment API as there are many: it charges whenever it is asked to, and has bad moments. It knows nothing of keys.

use std::collections::BTreeMap;
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
use tokio::task::JoinSet;

use super::dice::{Dice, Mood};

/// How long a charge takes to be made, and to be told.
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
}

impl Books {
    /// Books in which these payments were charged so many times.
    #[cfg(test)]
    pub(super) fn of(charged: &[(&str, u64)]) -> Self {
        let charged = charged.iter().map(|(payment, times)| ((*payment).to_owned(), *times)).collect();
        Self { charged, ..Self::default() }
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
    books: Arc<Mutex<Books>>,
    _serving: JoinSet<()>,
}

impl Bank {
    pub(super) async fn open(dice: Dice) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen on 127.0.0.1")?;
        let address = listener.local_addr()?;
        let books = Arc::<Mutex<Books>>::default();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, dice, Arc::clone(&books)));
        Ok(Self { address, books, _serving: serving })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn books(&self) -> Books {
        opened(&self.books).clone()
    }
}

fn opened(books: &Mutex<Books>) -> MutexGuard<'_, Books> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, dice: Dice, books: Arc<Mutex<Books>>) {
    let mut connections = JoinSet::new();
    loop {
        // Nothing is done about a connection that could not be taken: its client will ask again, as they do here.
        if let Ok((stream, _)) = listener.accept().await {
            connections.spawn(converse(stream, dice, Arc::clone(&books)));
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(stream: TcpStream, dice: Dice, books: Arc<Mutex<Books>>) {
    let service = service_fn(move |request| answered(request, dice, Arc::clone(&books)));
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // It ends badly whenever somebody hangs up, which is what this is about.
    let _ = connection.await;
}

/// What ends a connection without an answer.
const HUNG_UP: &str = "hung up";

async fn answered(
    request: Request<Incoming>,
    dice: Dice,
    books: Arc<Mutex<Books>>,
) -> Result<Response<Full<Bytes>>, &'static str> {
    if request.method() == http::Method::GET {
        return Ok(told(StatusCode::OK, &json!({ "charges": opened(&books).charges() })));
    }
    let Ok(body) = request.into_body().collect().await else { return Err(HUNG_UP) };
    let Ok(asked) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        let error = "send JSON: {\"payment\": \"p-1\", \"cents\": 4200}";
        return Ok(told(StatusCode::BAD_REQUEST, &json!({ "error": error })));
    };
    charge(&asked, dice, &books).await
}

async fn charge(
    asked: &Value,
    dice: Dice,
    books: &Mutex<Books>,
) -> Result<Response<Full<Bytes>>, &'static str> {
    let payment = asked.get("payment").and_then(Value::as_str).unwrap_or("unnamed").to_owned();
    let mood = {
        let mut books = opened(books);
        let visit = books.seen.entry(payment.clone()).or_default();
        *visit = visit.saturating_add(1);
        // Only the payments of the demo have a number; what people try by hand goes well.
        payment
            .strip_prefix("p-")
            .and_then(|number| number.parse().ok())
            .map_or(Mood::Fine, |number| dice.mood(number, *visit))
    };
    if mood == Mood::Overworked {
        let mut books = opened(books);
        books.overworked = books.overworked.saturating_add(1);
        let error = "no time; nothing was charged";
        return Ok(told(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": error })));
    }
    let number = {
        let mut books = opened(books);
        let times = books.charged.entry(payment.clone()).or_default();
        *times = times.saturating_add(1);
        books.charges()
    };
    tokio::time::sleep(WORK).await;
    if mood == Mood::Forgetful {
        let mut books = opened(books);
        books.hung_up = books.hung_up.saturating_add(1);
        return Err(HUNG_UP);
    }
    Ok(told(
        StatusCode::CREATED,
        &json!({ "charge": format!("ch_{number}"), "payment": payment, "cents": asked.get("cents") }),
    ))
}

fn told(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{body}\n"))));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
