//! Authentication before the layer: a caller whose session was revoked gets 401, and not the stored answer.
//!
//! In axum the layer that is added last sees a request first. So the order to write is: routes, semel, authentication.
//!
//! ```text
//! cargo run -p semel-examples --bin axum_auth
//! curl -i -XPOST http://127.0.0.1:4000/charges -H 'Authorization: Bearer alice-1' -H 'Idempotency-Key: a'    201, ch_1
//! curl -i -XPOST http://127.0.0.1:4000/charges -H 'Authorization: Bearer alice-1' -H 'Idempotency-Key: a'    the same, replayed
//! curl -i -XPOST http://127.0.0.1:4000/charges -H 'Authorization: Bearer bob-1' -H 'Idempotency-Key: a'      201, ch_2: another caller
//! curl -i -XDELETE http://127.0.0.1:4000/session -H 'Authorization: Bearer alice-1'                          logs Alice out
//! curl -i -XPOST http://127.0.0.1:4000/charges -H 'Authorization: Bearer alice-1' -H 'Idempotency-Key: a'    401
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, post};
use semel::Semel;
use semel::store::MemoryStore;
use semel_http::{IdempotencyLayer, Principal};

/// Who is logged in, and how often was charged.
#[derive(Clone, Default)]
struct Service {
    sessions: Arc<RwLock<HashMap<String, User>>>,
    charges: Arc<AtomicU64>,
}

/// Who sent a request, as authentication found out. This is what the layer knows callers by: a user who logs in again, with
/// another token, is still the same caller.
#[derive(Clone)]
struct User(String);

impl AsRef<str> for User {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Service {
    fn with_sessions(sessions: &[(&str, &str)]) -> Self {
        let sessions = sessions.iter().map(|(token, user)| ((*token).to_owned(), User((*user).to_owned())));
        Self { sessions: Arc::new(RwLock::new(sessions.collect())), charges: Arc::default() }
    }

    fn user(&self, token: &str) -> Option<User> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    fn revoke(&self, token: &str) {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner).remove(token);
    }
}

fn app(service: Service) -> Router {
    let semel = Semel::new(MemoryStore::new());
    Router::new()
        .route("/charges", post(charge))
        .route("/session", delete(log_out))
        .layer(IdempotencyLayer::new(semel, Principal::from_extension::<User>()))
        .layer(from_fn_with_state(service.clone(), authenticate))
        .with_state(service)
}

/// Says who the caller is, or answers 401. Nothing behind it is asked for a stranger: no handler, and no store.
async fn authenticate(State(service): State<Service>, mut request: Request, next: Next) -> Response {
    match bearer(&request).and_then(|token| service.user(token)) {
        Some(user) => {
            request.extensions_mut().insert(user);
            next.run(request).await
        }
        None => (StatusCode::UNAUTHORIZED, "log in first\n").into_response(),
    }
}

fn bearer(request: &Request) -> Option<&str> {
    request.headers().get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

async fn charge(State(service): State<Service>) -> impl IntoResponse {
    let number = service.charges.fetch_add(1, Ordering::SeqCst).saturating_add(1);
    (StatusCode::CREATED, format!("ch_{number}\n"))
}

async fn log_out(State(service): State<Service>, request: Request) -> StatusCode {
    if let Some(token) = bearer(&request) {
        service.revoke(token);
    }
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let service = Service::with_sessions(&[("alice-1", "alice"), ("alice-2", "alice"), ("bob-1", "bob")]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:4000").await?;
    println!("listening on {}; the lines to try are at the top of this file", listener.local_addr()?);
    Ok(axum::serve(listener, app(service)).await?)
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use tower::ServiceExt;

    use super::*;

    const SESSIONS: [(&str, &str); 3] = [("alice-1", "alice"), ("alice-2", "alice"), ("bob-1", "bob")];

    async fn charged(app: &Router, token: &str) -> (StatusCode, String) {
        let request = Request::post("/charges")
            .header("authorization", format!("Bearer {token}"))
            .header("idempotency-key", "a")
            .body(Body::empty());
        let response = app.clone().oneshot(request.expect("is a request")).await.expect("is answered");
        let status = response.status();
        let body = to_bytes(response.into_body(), 1_024).await.expect("is read");
        (status, String::from_utf8(body.to_vec()).expect("is text"))
    }

    #[tokio::test]
    async fn a_revoked_caller_gets_401_and_not_the_stored_answer() {
        let service = Service::with_sessions(&SESSIONS);
        let app = app(service.clone());
        assert_eq!(charged(&app, "alice-1").await, (StatusCode::CREATED, "ch_1\n".to_owned()));
        assert_eq!(charged(&app, "alice-1").await, (StatusCode::CREATED, "ch_1\n".to_owned()), "replayed");
        service.revoke("alice-1");
        let (status, body) = charged(&app, "alice-1").await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(!body.contains("ch_1"), "{body}");
    }

    #[tokio::test]
    async fn a_user_who_logged_in_again_is_the_same_caller_and_another_user_is_not() {
        let service = Service::with_sessions(&SESSIONS);
        let app = app(service.clone());
        assert_eq!(charged(&app, "alice-1").await.1, "ch_1\n");
        assert_eq!(charged(&app, "alice-2").await.1, "ch_1\n");
        assert_eq!(charged(&app, "bob-1").await.1, "ch_2\n");
        assert_eq!(service.charges.load(Ordering::SeqCst), 2);
    }

    /// The mistake that the order above avoids: with it, the first test would fail.
    #[tokio::test]
    async fn authentication_behind_the_layer_would_show_a_revoked_caller_what_is_stored() {
        let service = Service::with_sessions(&SESSIONS);
        let semel = Semel::new(MemoryStore::new());
        let app = Router::new()
            .route("/charges", post(charge))
            .layer(from_fn_with_state(service.clone(), authenticate))
            .layer(IdempotencyLayer::new(semel, Principal::header("authorization")))
            .with_state(service.clone());
        assert_eq!(charged(&app, "alice-1").await.1, "ch_1\n");
        service.revoke("alice-1");
        assert_eq!(charged(&app, "alice-1").await, (StatusCode::CREATED, "ch_1\n".to_owned()));
    }
}
