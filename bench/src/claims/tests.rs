//! Clients go through cycles with whoever answers as the claim server does, and notice who does not.

use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use tokio::net::TcpListener;

use super::entry::{Entry, Store};
use super::load::{Plan, Window, window};
use super::{echo, redis};
use crate::runtime::runtime;

/// Serves in this process, for as long as it runs.
fn served(router: Router) -> u16 {
    let (told, port) = std::sync::mpsc::channel();
    thread::spawn(move || {
        runtime(1).unwrap().block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            told.send(listener.local_addr().unwrap().port()).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    port.recv().unwrap()
}

fn measured(entry: Entry, router: Router) -> anyhow::Result<Window> {
    let span = Duration::from_millis(60);
    window(Plan { entry, port: served(router), pid: std::process::id(), span })
}

fn answering(complete: &'static str) -> Router {
    let run =
        r#"{"decision":"run","id":"00","permit":"p1.a","attempt":1,"fence":1,"lease_ms":60000,"steps":[]}"#;
    Router::new()
        .route("/v1/claim", post(async move || run))
        .route("/v1/complete", post(async move || complete))
}

#[test]
fn a_window_counts_echoes_and_cycles() {
    let echo = measured(Entry::Echo, echo::router()).unwrap();
    assert!(echo.cycles > 0.0 && echo.p50_us <= echo.p99_us, "{echo:?}");
    let cycles = measured(Entry::Single(Store::Memory), answering(r#"{"decision":"done"}"#)).unwrap();
    assert!(cycles.cycles > 0.0, "{cycles:?}");
}

#[test]
fn a_run_that_was_lost_is_found_out() {
    let error = measured(Entry::Single(Store::Memory), answering(r#"{"decision":"lost"}"#)).unwrap_err();
    assert!(format!("{error:#}").contains("lost"), "{error:#}");
}

#[test]
fn redis_keeps_every_key_and_says_how_fast() {
    let found = redis::window(&redis::start().unwrap(), 20).unwrap();
    assert!(found.cycles > 0.0 && found.p99_us >= found.p50_us, "{found:?}");
}
