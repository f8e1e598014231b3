//! A shop that charges cards, on a socket of its own, and the promises that must hold whatever is around the layer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::post;
use http::StatusCode;
use semel::Semel;
use semel::store::MemoryStore;
use semel_http::{IdempotencyLayer, Principal, Settings};
use test_http::{Answer, Client, soon};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// A shop: it counts charges, and slow ones wait until the test lets them end.
#[derive(Clone)]
pub(super) struct Shop {
    charges: Arc<AtomicUsize>,
    began: Arc<Semaphore>,
    may_end: Arc<Semaphore>,
    dropped: Arc<Semaphore>,
}

impl Shop {
    pub(super) fn new() -> Self {
        let none = || Arc::new(Semaphore::new(0));
        Self { charges: Arc::default(), began: none(), may_end: none(), dropped: none() }
    }

    /// `POST /charges` charges at once, `POST /slow` when the test says so.
    pub(super) fn routes(&self) -> Router {
        let routes = Router::new().route("/charges", post(charge)).route("/slow", post(charge_slowly));
        routes.with_state(self.clone())
    }

    /// How many cards were charged.
    pub(super) fn charges(&self) -> usize {
        self.charges.load(Ordering::SeqCst)
    }

    pub(super) fn charge(&self) -> usize {
        self.charges.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Waits until a slow charge has charged the card, and has yet to answer.
    pub(super) async fn slow_charge_began(&self) {
        soon("a slow charge", self.began.acquire()).await.unwrap().forget();
    }

    /// Lets one slow charge answer.
    pub(super) fn let_one_end(&self) {
        self.may_end.add_permits(1);
    }

    /// What a slow handler does: the effect first, and then nothing until the test says so.
    pub(super) async fn charge_and_wait(&self) -> usize {
        let number = self.charge();
        self.began.add_permits(1);
        self.may_end.acquire().await.unwrap().forget();
        number
    }

    /// Waits until the server has dropped a request that was not answered, as it does when a client hangs up.
    pub(super) async fn request_dropped(&self) {
        soon("the server to notice", self.dropped.acquire()).await.unwrap().forget();
    }

    /// Serves the app on a free port until the test ends.
    pub(super) async fn serve(&self, app: Router) -> SocketAddr {
        let app = app.layer(from_fn_with_state(self.clone(), note_dropped));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }
}

async fn charge(State(shop): State<Shop>, body: String) -> impl IntoResponse {
    receipt(shop.charge(), &body)
}

async fn charge_slowly(State(shop): State<Shop>, body: String) -> impl IntoResponse {
    receipt(shop.charge_and_wait().await, &body)
}

/// An answer with more than a status: headers, one of them twice, and enough text to be compressed.
pub(super) fn receipt(number: usize, body: &str) -> impl IntoResponse + use<> {
    let headers = AppendHeaders([
        ("location", format!("/charges/{number}")),
        ("etag", format!("\"{number}\"")),
        ("link", "</terms>; rel=terms".to_owned()),
        ("link", "</help>; rel=help".to_owned()),
    ]);
    (StatusCode::CREATED, headers, format!("charge {number} of {body}; {}", "thank you; ".repeat(20)))
}

struct NoteDropped(Option<Shop>);

impl Drop for NoteDropped {
    fn drop(&mut self) {
        if let Some(shop) = &self.0 {
            shop.dropped.add_permits(1);
        }
    }
}

async fn note_dropped(State(shop): State<Shop>, request: Request, next: Next) -> Response {
    let mut note = NoteDropped(Some(shop));
    let response = next.run(request).await;
    note.0 = None;
    response
}

/// The layer on a store of its own. Callers are known by what they send as `Authorization`.
pub(super) fn layer() -> IdempotencyLayer {
    layer_with(Settings::default())
}

pub(super) fn layer_with(settings: Settings) -> IdempotencyLayer {
    let semel = Semel::new(MemoryStore::new());
    IdempotencyLayer::with_settings(semel, Principal::header("authorization"), settings).unwrap()
}

/// A charge of Alice's.
pub(super) fn charge_to(path: &str, key: &str) -> test_http::Request {
    test_http::Request::json(path, r#"{"amount": 4200}"#).from("alice").key(key)
}

/// Sends a request over a connection of its own.
pub(super) async fn ask(at: SocketAddr, request: &test_http::Request) -> Answer {
    Client::connect(at).await.send(request).await
}

/// It must be the first answer again: status, headers and body, byte for byte.
#[track_caller]
pub(super) fn assert_same_answer(retry: &Answer, first: &Answer) {
    retry.replays(first);
    assert_eq!(lasting_headers(retry), lasting_headers(first));
}

/// Every header but those of the moment, and the one that says that it is a replay.
fn lasting_headers(answer: &Answer) -> Vec<(String, String)> {
    let of_the_moment = ["date", "idempotent-replayed", "connection"];
    let lasting = answer.headers.iter().filter(|(name, _)| !of_the_moment.contains(&name.as_str()));
    let mut lasting = lasting.cloned().collect::<Vec<_>>();
    lasting.sort();
    lasting
}

/// One effect for each key; a retry gets the first answer; another body is refused; another caller sees nothing of it.
pub(super) async fn assert_promises(at: SocketAddr, path: &str, shop: &Shop) {
    let before = shop.charges();
    let request = charge_to(path, "promise");
    let first = ask(at, &request).await;
    first.ran(201);
    assert_same_answer(&ask(at, &request).await, &first);
    ask(at, &request.clone().body(r#"{"amount": 9900}"#)).await.refused(422, "mismatch");
    assert_same_answer(&ask(at, &request).await, &first);
    let other_caller = ask(at, &request.without_caller().from("bob")).await;
    other_caller.ran(201);
    assert_ne!(other_caller.body, first.body, "another caller got Alice's answer");
    assert_eq!(shop.charges() - before, 2, "one charge for Alice, one for Bob");
}

/// A client that hangs up stops nothing, and its retry gets the answer that it missed. `path` is of a slow charge.
pub(super) async fn assert_outlives_a_hang_up(
    at: SocketAddr,
    path: &str,
    shop: &Shop,
    of: &IdempotencyLayer,
) {
    let before = shop.charges();
    let request = charge_to(path, "hang-up");
    let mut client = Client::connect(at).await;
    client.write(request.bytes()).await;
    shop.slow_charge_began().await;
    client.reset();
    shop.request_dropped().await;
    ask(at, &request).await.refused(409, "in_flight");
    shop.let_one_end();
    soon("the run to end", of.none_running()).await;
    let retry = ask(at, &request).await;
    assert!(retry.is_replay() && retry.status == 201, "{retry:?}");
    assert_eq!(shop.charges() - before, 1);
}
