//! A login by cookie: the session says who the caller is, and a session id that changes is still the same caller.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{HeaderValue, StatusCode, header};
use semel::Semel;
use semel::store::MemoryStore;
use semel_http::{IdempotencyLayer, Principal};
use test_http::Answer;

use super::shop::{Shop, ask};

/// Who is logged in, by the id of their session. An id is good for one request; each answer has the next.
#[derive(Clone, Default)]
struct Sessions(Arc<Mutex<(HashMap<String, User>, usize)>>);

#[derive(Clone)]
struct User(String);

impl AsRef<str> for User {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Sessions {
    fn log_in(&self, user: &str) -> String {
        let mut sessions = self.0.lock().unwrap();
        sessions.1 += 1;
        let id = format!("session-{}", sessions.1);
        sessions.0.insert(id.clone(), User(user.to_owned()));
        id
    }

    /// The user of a session, and the id that the session has from now on.
    fn rotate(&self, id: &str) -> Option<(User, String)> {
        let user = self.0.lock().unwrap().0.remove(id)?;
        let next = self.log_in(&user.0);
        Some((user, next))
    }
}

/// Finds the session's user, and gives the session another id.
async fn session(State(sessions): State<Sessions>, mut request: Request, next: Next) -> Response {
    let cookie = request.headers().get(header::COOKIE).and_then(|cookie| cookie.to_str().ok());
    let Some((user, id)) = cookie.and_then(|cookie| sessions.rotate(cookie.strip_prefix("sid=")?)) else {
        return (StatusCode::UNAUTHORIZED, "log in first").into_response();
    };
    request.extensions_mut().insert(user);
    let mut response = next.run(request).await;
    let cookie = HeaderValue::try_from(format!("sid={id}; HttpOnly")).unwrap();
    response.headers_mut().append(header::SET_COOKIE, cookie);
    response
}

async fn serve(shop: &Shop, sessions: &Sessions, principal: Principal) -> SocketAddr {
    let charging = shop.clone();
    let charge = move || async move {
        let cookie = [("set-cookie", "basket=empty")];
        (StatusCode::CREATED, cookie, format!("charge {}", charging.charge()))
    };
    let app = Router::new()
        .route("/charges", post(charge))
        .layer(IdempotencyLayer::new(Semel::new(MemoryStore::new()), principal))
        .layer(from_fn_with_state(sessions.clone(), session));
    shop.serve(app).await
}

/// A charge with key `k`; the answer, and the id that the session has after it.
async fn charge(at: SocketAddr, id: &str, body: &str) -> (Answer, String) {
    let request = test_http::Request::json("/charges", body).key("k").header("cookie", &format!("sid={id}"));
    let answer = ask(at, &request).await;
    let next = answer
        .all("set-cookie")
        .iter()
        .find_map(|cookie| cookie.strip_prefix("sid=")?.strip_suffix("; HttpOnly"));
    let next = next.unwrap_or_default().to_owned();
    (answer, next)
}

#[tokio::test]
async fn a_session_whose_id_changed_is_the_same_caller_and_another_user_is_not() {
    let (shop, sessions) = (Shop::new(), Sessions::default());
    let at = serve(&shop, &sessions, Principal::from_extension::<User>()).await;
    let (first, id) = charge(at, &sessions.log_in("alice"), "{}").await;
    first.ran(201);
    let (retry, id) = charge(at, &id, "{}").await;
    retry.replays(&first);
    let (mismatch, _) = charge(at, &id, r#"{"amount": 1}"#).await;
    mismatch.refused(422, "mismatch");
    // Logged in anew, on another device perhaps.
    charge(at, &sessions.log_in("alice"), "{}").await.0.replays(&first);
    let (bob, _) = charge(at, &sessions.log_in("bob"), "{}").await;
    assert_ne!(bob.ran(201).body, first.body);
    assert_eq!(shop.charges(), 2);
}

#[tokio::test]
async fn a_replay_has_the_cookie_of_its_own_session_and_none_of_the_first_answer() {
    let (shop, sessions) = (Shop::new(), Sessions::default());
    let at = serve(&shop, &sessions, Principal::from_extension::<User>()).await;
    let (first, second_id) = charge(at, &sessions.log_in("alice"), "{}").await;
    assert_eq!(first.all("set-cookie").len(), 2, "{first:?}");
    let (retry, third_id) = charge(at, &second_id, "{}").await;
    assert_eq!(retry.replays(&first).all("set-cookie"), [format!("sid={third_id}; HttpOnly")]);
    assert_ne!(third_id, second_id);
}

#[tokio::test]
async fn a_session_that_ended_gets_401_and_not_the_stored_answer() {
    let (shop, sessions) = (Shop::new(), Sessions::default());
    let at = serve(&shop, &sessions, Principal::from_extension::<User>()).await;
    let id = sessions.log_in("alice");
    let (first, _) = charge(at, &id, "{}").await;
    let (late, _) = charge(at, &id, "{}").await;
    assert_eq!(late.ran(401).text(), "log in first");
    assert_eq!((first.status, shop.charges()), (201, 1));
}

/// The mistake that the extension avoids: each id of a session is a caller of its own, and a retry charges again.
#[tokio::test]
async fn the_cookie_itself_is_no_caller() {
    let (shop, sessions) = (Shop::new(), Sessions::default());
    let at = serve(&shop, &sessions, Principal::header("cookie")).await;
    let (_, id) = charge(at, &sessions.log_in("alice"), "{}").await;
    charge(at, &id, "{}").await.0.ran(201);
    assert_eq!(shop.charges(), 2);
}
