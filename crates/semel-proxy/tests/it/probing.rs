//! Probes as a configuration names them: how many at once, and what is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use semel_proxy::Proxy;
use semel_proxy::config::Config;
use test_http::{Answer, until};
use tokio::sync::Semaphore;

use crate::client::Client;
use crate::proxied::start;
use crate::service::Service;

/// A service whose charges break off, and whose lookups wait at a gate.
struct Shop {
    service: Service,
    gate: Arc<Semaphore>,
    probes: Arc<AtomicUsize>,
}

impl Shop {
    async fn open() -> Self {
        let (gate, probes) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let (theirs, counted) = (Arc::clone(&gate), Arc::clone(&probes));
        let lookup = move || {
            let gate = Arc::clone(&theirs);
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                gate.acquire().await.expect("is never closed").forget();
                (StatusCode::OK, "charge 7")
            }
        };
        let router = Router::new().route("/charges", post(breaks_off)).route("/lookup", get(lookup));
        Self { service: Service::routed(router).await, gate, probes }
    }

    async fn proxy(&self, rest: &str) -> Proxy {
        probing(&self.service, rest).await
    }
}

/// A proxy that asks this service what became of a run.
async fn probing(service: &Service, rest: &str) -> Proxy {
    let upstream = service.address;
    let text = format!(
        "upstream = 'http://{upstream}'\nlisten = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\nstore = 'memory:'\naccess_log = 'off'\n\
         [rules]\nlease = '200ms'\nprobe = {{ path = '/lookup?key={{key}}', headers = [] }}\n{rest}"
    );
    start(Config::parse(&text, "the test's").and_then(|config| config.settings()).expect("is fine")).await
}

/// The quiet way to panic: the connection ends without an answer.
async fn breaks_off() -> StatusCode {
    std::panic::resume_unwind(Box::new("breaks off"))
}

async fn charge(proxy: &Proxy, key: &str) -> Answer {
    let request = format!(
        "POST /charges HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\nIdempotency-Key: {key}\r\nContent-Length: 0\r\n\r\n"
    );
    Client::connect(proxy.listening()).await.ask(&request).await
}

async fn after_the_lease(proxy: &Proxy, key: &str) -> Answer {
    until("the lease to lapse", async || {
        let answer = charge(proxy, key).await;
        (answer.code().as_deref() != Some("in_flight")).then_some(answer)
    })
    .await
}

async fn metrics(proxy: &Proxy) -> String {
    let admin = proxy.admin().expect("has one");
    Client::connect(admin)
        .await
        .ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .text()
        .to_owned()
}

#[tokio::test]
async fn h57_past_the_bound_on_probes_in_flight_a_retry_is_held_for_a_second_and_the_upstream_is_not_asked() {
    let shop = Shop::open().await;
    let proxy = shop.proxy("[bounds]\nprobes_in_flight_max = 1\n").await;
    for key in ["a", "b"] {
        assert_eq!(charge(&proxy, key).await.status, 504);
    }
    let second = async {
        until("the first probe", async || (shop.probes.load(Ordering::SeqCst) == 1).then_some(())).await;
        let deferred = after_the_lease(&proxy, "b").await;
        deferred.refused(409, "outcome_held");
        assert_eq!(deferred.retry_after(), 1, "{deferred:?}");
        let counted = metrics(&proxy).await;
        assert!(counted.contains("\nsemel_probes_in_flight 1\n"), "{counted}");
        assert!(counted.contains("\nsemel_probes_deferred_total 1\n"), "{counted}");
        assert_eq!(shop.probes.load(Ordering::SeqCst), 1);
        shop.gate.add_permits(2);
    };
    let (first, ()) = tokio::join!(after_the_lease(&proxy, "a"), second);
    assert_eq!(first.text(), "charge 7");
    // The probe that was not asked left nothing behind that would keep the next one from being asked.
    assert_eq!(charge(&proxy, "b").await.text(), "charge 7");
    let counted = metrics(&proxy).await;
    for line in [
        "semel_probes_in_flight 0",
        "semel_probes_total{result=\"landed\"} 2",
        "semel_probes_total{result=\"not_landed\"} 0",
        "semel_probe_seconds_count 2",
    ] {
        assert!(counted.contains(&format!("\n{line}\n")), "no {line}: {counted}");
    }
}

#[tokio::test]
async fn h57_a_probe_whose_client_leaves_gives_its_place_back() {
    let shop = Shop::open().await;
    let proxy = shop.proxy("[bounds]\nprobes_in_flight_max = 1\n").await;
    for key in ["a", "b"] {
        assert_eq!(charge(&proxy, key).await.status, 504);
    }
    let deadline = tokio::time::Duration::from_secs(2);
    let left = tokio::time::timeout(deadline, after_the_lease(&proxy, "a")).await;
    assert!(left.is_err(), "the probe waits at its gate");
    shop.gate.add_permits(2);
    assert_eq!(after_the_lease(&proxy, "b").await.text(), "charge 7");
}

#[tokio::test]
async fn h57_a_probe_that_is_reloaded_is_asked_by_the_next_retry() {
    let shop = Shop::open().await;
    let proxy = shop.proxy("").await;
    assert_eq!(charge(&proxy, "a").await.status, 504);
    let text = format!(
        "upstream = 'http://{}'\n[rules]\nlease = '200ms'\nprobe = {{ path = '/elsewhere/{{key}}', headers = [] }}\n",
        shop.service.address
    );
    let reloaded = Config::parse(&text, "the test's").and_then(|config| config.settings()).expect("is fine");
    proxy.reload(reloaded).expect("is taken");
    // There is no such path: 404, so the retry runs, and breaks off again.
    assert_eq!(after_the_lease(&proxy, "a").await.status, 504);
    assert_eq!(shop.probes.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn h57_a_probe_whose_answer_breaks_off_leaves_the_key_held() {
    for (lookup, is_whole) in [
        ("Content-Length: 8\r\n\r\ncharge 7", true),
        ("Content-Length: 8\r\n\r\ncharge", false),
        ("Transfer-Encoding: chunked\r\n\r\n8\r\ncharge 7\r\n0\r\n\r\n", true),
        ("Transfer-Encoding: chunked\r\n\r\n8\r\ncharge 7\r\n", false),
    ] {
        let service = Service::scripted(move |mut line| async move {
            // A charge is left without an answer.
            if line.head().await.starts_with("GET") {
                line.write(format!("HTTP/1.1 200 OK\r\n{lookup}")).await;
            }
        })
        .await;
        let proxy = probing(&service, "").await;
        assert_eq!(charge(&proxy, "a").await.status, 504);
        let found = after_the_lease(&proxy, "a").await;
        if is_whole {
            assert_eq!(
                (found.status, found.text(), found.is_replay()),
                (200, "charge 7", true),
                "{lookup:?}"
            );
        } else {
            found.refused(409, "outcome_held");
        }
    }
}
