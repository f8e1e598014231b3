//! A whole axum service with its own authentication and state, whose charges happen once.
//!
//! `crates/semel-http/README.md` shows this program, from here to its tests. Start it and try it:
//!
//! ```text
//! cargo run -p semel-examples --bin axum_auth
//! charge() { curl -i http://127.0.0.1:4000/charges -H "Authorization: Bearer $1" -H "Idempotency-Key: $2" --json "$3"; }
//! charge alice-1 order-1042 '{"cents": 4200}'     201, ch_1
//! charge alice-1 order-1042 '{"cents": 4200}'     the same answer, with idempotent-replayed: true
//! charge alice-2 order-1042 '{"cents": 4200}'     the same: another token of the same user
//! charge bob-1 order-1042 '{"cents": 4200}'       201, ch_2: another user
//! charge alice-1 order-1042 '{"cents": 1}'        422: the key was used for another request
//! curl -X DELETE http://127.0.0.1:4000/session -H 'Authorization: Bearer alice-1'
//! charge alice-1 order-1042 '{"cents": 4200}'     401: the session has ended
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, post};
use axum::{Extension, Json, Router};
use semel::Semel;
use semel_file::FileStore;
use semel_http::{Granted, IdempotencyLayer, KeyPresence, Principal, Settings};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Answers are kept in this folder, and survive a crash. The other stores are PostgreSQL, Redis and memory.
    let semel = Semel::new(FileStore::open("semel-data")?);
    let state = AppState::with_sessions(&[("alice-1", "alice"), ("alice-2", "alice"), ("bob-1", "bob")]);
    let listener = TcpListener::bind("127.0.0.1:4000").await?;
    println!("listening on http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, app(semel, state)?).await?)
}

fn app(semel: Semel, state: AppState) -> semel::Result<Router> {
    let mut settings = Settings::default();
    // `charge` takes a permit, and only a request with a key has one: without a key it is answered 400.
    settings.profile.rules.key = KeyPresence::Required;
    let idempotency = IdempotencyLayer::with_settings(semel, Principal::from_extension::<User>(), settings)?;
    Ok(Router::new()
        .route("/charges", post(charge))
        .route("/session", delete(log_out))
        // The layer that is added last runs first: authentication, then the layer, then the handler.
        .route_layer(idempotency)
        .route_layer(from_fn_with_state(state.clone(), authenticate))
        .with_state(state))
}

/// The state of the service: sessions by token, and the number of charges.
#[derive(Clone)]
struct AppState {
    sessions: Arc<RwLock<HashMap<String, User>>>,
    charges: Arc<AtomicU64>,
}

/// The sender of a request, set by `authenticate`. A key belongs to a user, so a user with a new token is the same caller.
#[derive(Clone, Serialize)]
struct User(String);

/// `Principal::from_extension` reads the name of the caller from this.
impl AsRef<str> for User {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl AppState {
    fn with_sessions(sessions: &[(&str, &str)]) -> Self {
        let sessions = sessions.iter().map(|(token, user)| ((*token).to_owned(), User((*user).to_owned())));
        Self { sessions: Arc::new(RwLock::new(sessions.collect())), charges: Arc::default() }
    }

    fn user(&self, token: &str) -> Option<User> {
        self.sessions.read().ok()?.get(token).cloned()
    }

    fn revoke(&self, token: &str) {
        if let Ok(mut sessions) = self.sessions.write() {
            sessions.remove(token);
        }
    }
}

/// Finds the user of the token and puts it into the request, or answers 401 before the layer is reached.
async fn authenticate(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let Some(user) = bearer(&request).and_then(|token| state.user(token)) else {
        return (StatusCode::UNAUTHORIZED, "log in first\n").into_response();
    };
    request.extensions_mut().insert(user);
    next.run(request).await
}

fn bearer(request: &Request) -> Option<&str> {
    request.headers().get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

#[derive(Deserialize)]
struct Order {
    cents: u64,
}

#[derive(Serialize)]
struct Charge {
    id: String,
    user: User,
    cents: u64,
    /// Send this as the idempotency key of your payment provider: it is the same for every attempt.
    provider_key: String,
}

/// Runs once for each key. A retry gets the stored answer, and this function is not called.
async fn charge(
    State(state): State<AppState>,
    Extension(user): Extension<User>,
    Granted(permit): Granted,
    Json(order): Json<Order>,
) -> (StatusCode, Json<Charge>) {
    let number = state.charges.fetch_add(1, Ordering::SeqCst).saturating_add(1);
    let provider_key = permit.derive("provider.charge");
    let charge = Charge { id: format!("ch_{number}"), user, cents: order.cents, provider_key };
    (StatusCode::CREATED, Json(charge))
}

async fn log_out(State(state): State<AppState>, request: Request) -> StatusCode {
    if let Some(token) = bearer(&request) {
        state.revoke(token);
    }
    StatusCode::NO_CONTENT
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use semel::store::MemoryStore;
    use tower::ServiceExt;

    use super::*;

    const README: &str = include_str!("../../../crates/semel-http/README.md");
    const THIS_FILE: &str = include_str!("axum_auth.rs");

    fn service() -> (Router, AppState) {
        let state = AppState::with_sessions(&[("alice-1", "alice"), ("alice-2", "alice"), ("bob-1", "bob")]);
        (app(Semel::new(MemoryStore::new()), state.clone()).expect("is a layer"), state)
    }

    /// Status, body, and whether it is a replay.
    type Answer = (StatusCode, String, bool);

    async fn sent(app: &Router, token: &str, key: Option<&str>, body: &str) -> Answer {
        let mut request = Request::post("/charges")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Body::from(body.to_owned())).expect("is a request");
        let response = app.clone().oneshot(request).await.expect("is answered");
        let (status, is_replay) = (response.status(), response.headers().contains_key("idempotent-replayed"));
        let body = to_bytes(response.into_body(), 4_096).await.expect("is read");
        (status, String::from_utf8(body.to_vec()).expect("is text"), is_replay)
    }

    async fn charged(app: &Router, token: &str) -> Answer {
        sent(app, token, Some("order-1042"), r#"{"cents": 4200}"#).await
    }

    #[tokio::test]
    async fn a_charge_happens_once_for_each_user_and_its_retry_gets_the_same_answer() {
        let (app, state) = service();
        let (status, body, is_replay) = charged(&app, "alice-1").await;
        assert_eq!((status, is_replay), (StatusCode::CREATED, false), "{body}");
        assert!(body.contains(r#""id":"ch_1","user":"alice","cents":4200,"provider_key":""#), "{body}");
        for token in ["alice-1", "alice-2"] {
            assert_eq!(charged(&app, token).await, (StatusCode::CREATED, body.clone(), true), "{token}");
        }
        let (_, bobs, is_replay) = charged(&app, "bob-1").await;
        assert!(bobs.contains("ch_2") && !is_replay, "{bobs}");
        assert_eq!(state.charges.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn another_request_under_the_same_key_and_a_request_without_a_key_are_refused() {
        let (app, state) = service();
        charged(&app, "alice-1").await;
        let (status, body, _) = sent(&app, "alice-1", Some("order-1042"), r#"{"cents": 1}"#).await;
        assert!(status == StatusCode::UNPROCESSABLE_ENTITY && body.contains("mismatch"), "{status} {body}");
        let (status, body, _) = sent(&app, "alice-1", None, r#"{"cents": 1}"#).await;
        assert!(status == StatusCode::BAD_REQUEST && body.contains("key_missing"), "{status} {body}");
        assert_eq!(state.charges.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_revoked_caller_gets_401_and_not_the_stored_answer() {
        let (app, state) = service();
        charged(&app, "alice-1").await;
        state.revoke("alice-1");
        assert_eq!(
            charged(&app, "alice-1").await,
            (StatusCode::UNAUTHORIZED, "log in first\n".to_owned(), false)
        );
    }

    /// The mistake that the order of the layers avoids: with it, the test above would fail.
    #[tokio::test]
    async fn authentication_behind_the_layer_would_show_a_revoked_caller_what_is_stored() {
        let (_, state) = service();
        let idempotency =
            IdempotencyLayer::new(Semel::new(MemoryStore::new()), Principal::header("authorization"));
        let app = Router::new()
            .route("/charges", post(charge))
            .route_layer(from_fn_with_state(state.clone(), authenticate))
            .route_layer(idempotency)
            .with_state(state.clone());
        let (_, first, _) = charged(&app, "alice-1").await;
        state.revoke("alice-1");
        assert_eq!(charged(&app, "alice-1").await, (StatusCode::CREATED, first, true));
    }

    #[test]
    fn the_readme_of_semel_http_shows_this_program() {
        let shown = README.split("```rust,no_run\n").nth(1).and_then(|rest| rest.split("```").next());
        let program = THIS_FILE.split("\n#[cfg(test)]\n").next().and_then(|text| text.split_once("\n\n"));
        assert_eq!(shown, program.map(|(_, program)| program), "copy this program into the README");
    }
}
