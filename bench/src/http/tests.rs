//! Clients notice every answer that is not the right one, and nginx is before the handler.

use std::fs;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::http::header::HeaderName;
use axum::middleware::map_response;
use axum::response::Response;
use tokio::net::TcpListener;

use super::api::{Runs, charges, counts};
use super::load::{Keys, Plan, REPLAYED_KEYS, Window, runs, window};
use crate::runtime::runtime;

/// Serves in this process, for as long as it runs.
fn served(change: impl FnOnce(Router) -> Router) -> u16 {
    let (told, port) = std::sync::mpsc::channel();
    let handler = Runs::default();
    let router = change(charges(handler.clone())).merge(counts(handler));
    thread::spawn(move || {
        runtime(1).unwrap().block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            told.send(listener.local_addr().unwrap().port()).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    port.recv().unwrap()
}

fn measured(port: u16, keys: Keys) -> anyhow::Result<Window> {
    let span = Duration::from_millis(60);
    window(Plan { port, pid: std::process::id(), connections: 4, keys, first: 5_000, span })
}

#[test]
fn a_window_counts_every_request_that_it_sent() {
    let port = served(|router| router);
    let found = measured(port, Keys::New).unwrap();
    assert!(found.rate > 0.0 && found.p50_us <= found.p99_us, "{found:?}");
    assert_eq!(runs(port).unwrap(), found.runs);
    assert_eq!(found.next, 5_000 + found.runs.max(REPLAYED_KEYS));
}

#[test]
fn a_handler_that_runs_again_is_no_replay() {
    let error = measured(served(|router| router), Keys::Done).unwrap_err();
    assert!(error.to_string().contains("not that of its first run"), "{error:#}");
}

#[test]
fn a_handler_that_runs_again_and_says_replay_is_found_out() {
    let lie = async |mut response: Response| {
        let run =
            response.headers().get("location").is_some_and(|location| location.as_bytes().ends_with(b"42"));
        if run {
            let replayed = HeaderName::from_static("idempotent-replayed");
            response.headers_mut().insert(replayed, "true".parse().unwrap());
        }
        response
    };
    let error = measured(served(|router| router.layer(map_response(lie))), Keys::Done).unwrap_err();
    assert!(error.to_string().contains("nobody had it"), "{error:#}");
    let error = measured(served(|router| router.layer(map_response(lie))), Keys::New).unwrap_err();
    assert!(error.to_string().contains("nobody had it"), "{error:#}");
}

#[test]
fn an_answer_that_was_changed_on_its_way_is_found_out() {
    let shorter = async |response: Response| response.map(|_| axum::body::Body::from("{}"));
    let error = measured(served(|router| router.layer(map_response(shorter))), Keys::None).unwrap_err();
    assert!(error.to_string().contains("was answered with {}"), "{error:#}");
}

#[test]
fn nginx_is_before_the_handler_and_gone_afterwards() {
    use super::nginx::{AccessLog, start};
    let folder = std::env::temp_dir().join(format!("semel-bench-nginx-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let port = served(|router| router);
    let nginx = start(port, AccessLog::On, &folder).unwrap();
    let found = measured(nginx.port, Keys::None).unwrap();
    assert_eq!(runs(port).unwrap(), found.runs);
    let logged = fs::read_to_string(folder.join("access.log")).unwrap();
    assert_eq!(logged.lines().count() as u64, found.runs);
    let front = nginx.port;
    drop(nginx);
    assert!(std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, front)).is_err());
    fs::remove_dir_all(folder).unwrap();
}
