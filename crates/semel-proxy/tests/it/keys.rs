//! Requests with a key, through the whole of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;

use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;

const CHARGE: &str = "POST /charges HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\nIdempotency-Key: k\r\n\
                      Content-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"cents\":5}";

async fn charges() -> (Service, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let charge = move || {
        let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            (StatusCode::CREATED, [("location", format!("/charges/{number}"))], format!("charge {number}"))
        }
    };
    (Service::routed(Router::new().route("/charges", post(charge))).await, calls)
}

#[tokio::test]
async fn a_retry_gets_the_first_answer_and_the_service_is_asked_once() {
    let (service, calls) = charges().await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    let first = client.ask(CHARGE).await;
    let again = client.ask(CHARGE).await;
    assert_eq!((first.status, first.text(), first.header("idempotent-replayed")), (201, "charge 1", None));
    assert_eq!(
        (again.status, again.text(), again.header("idempotent-replayed")),
        (201, "charge 1", Some("true"))
    );
    assert_eq!(again.header("location"), Some("/charges/1"));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_that_leaves_while_it_runs_finds_the_outcome_when_it_comes_back() {
    let go_on = Arc::new(tokio::sync::Semaphore::new(0));
    let (theirs, calls) = (Arc::clone(&go_on), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    let charge = move || {
        let go_on = Arc::clone(&theirs);
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let _ = go_on.acquire().await.expect("is never closed");
            "done"
        }
    };
    let service = Service::routed(Router::new().route("/charges", post(charge))).await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write(CHARGE).await;
    while calls.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    drop(client);
    assert_eq!(Client::connect(proxy.listening()).await.ask(CHARGE).await.status, 409);
    go_on.add_permits(1);
    let replayed = loop {
        let answer = Client::connect(proxy.listening()).await.ask(CHARGE).await;
        if answer.status != 409 {
            break answer;
        }
    };
    assert_eq!((replayed.text(), replayed.header("idempotent-replayed")), ("done", Some("true")));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn rules_that_are_reloaded_hold_from_the_next_request_on() {
    let (service, calls) = charges().await;
    let first = settings(service.address);
    let proxy = start(first.clone()).await;
    let mut client = Client::connect(proxy.listening()).await;
    assert_eq!(client.ask(CHARGE).await.text(), "charge 1");
    let mut strict = first.clone();
    strict.http.profile.key.unquoted = semel_http::UnquotedKeys::Refused;
    proxy.reload(strict.clone()).expect("is taken");
    assert_eq!(client.ask(CHARGE).await.status, 400, "the same connection, the new rules");
    strict.http.scope = vec![String::new()];
    assert!(proxy.reload(strict.clone()).is_err(), "a scope that no key can have is refused");
    assert_eq!(client.ask(CHARGE).await.status, 400, "and the rules before it stay");
    proxy.reload(first).expect("is taken");
    assert_eq!(client.ask(CHARGE).await.text(), "charge 1", "what was kept is still known");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    strict.listener.listen.set_port(1);
    assert_eq!(proxy.needs_restart(&strict), ["listen"]);
}
