//! Health and metrics, on a listener of their own.

use crate::client::Client;
use crate::proxied::{settings, start, start_with_tokens};
use crate::service::Service;
use semel_server::access::Tokens;
use test_http::{Role, Token};

async fn get(address: std::net::SocketAddr, path: &str) -> (u16, String) {
    let answer =
        Client::connect(address).await.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
    (answer.status, answer.text().to_owned())
}

#[tokio::test]
async fn a_proxy_says_how_it_is_and_what_it_did() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.admin = Some("127.0.0.1:0".parse().expect("is an address"));
    let proxy = start(settings).await;
    let admin = proxy.admin().expect("listens");
    assert_eq!(get(admin, "/healthz").await, (200, "alive\n".to_owned()));
    assert_eq!(get(admin, "/readyz").await, (200, "ready\n".to_owned()));
    assert_eq!(get(admin, "/nothing").await.0, 404);
    assert_eq!(
        get(proxy.listening(), "/healthz").await.1.lines().next(),
        Some("GET /healthz HTTP/1.1"),
        "is passed"
    );
    let keyed =
        "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: t\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n";
    Client::connect(proxy.listening()).await.ask(keyed).await;
    Client::connect(proxy.listening()).await.ask(keyed).await;
    let (status, metrics) = get(admin, "/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "semel_http_requests_total{decision=\"pass\",status=\"2xx\"} 1",
        "semel_http_requests_total{decision=\"run\",status=\"2xx\"} 1",
        "semel_http_requests_total{decision=\"replay\",status=\"2xx\"} 1",
        "semel_decisions_total{decision=\"replay\"} 1",
        "semel_http_request_seconds_count{decision=\"run\"} 1",
        "semel_http_upstream_connects_total 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
}

#[tokio::test]
async fn a_proxy_that_drains_is_not_ready() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings = settings(service.address);
    settings.admin = Some("127.0.0.1:0".parse().expect("is an address"));
    settings.listener.timeouts.drain = std::time::Duration::from_secs(5);
    let proxy = start(settings).await;
    let admin = proxy.admin().expect("listens");
    let mut client = Client::connect(proxy.listening()).await;
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    while service.connections() == 0 {
        tokio::task::yield_now().await;
    }
    let drain = tokio::spawn(proxy.drain());
    while get(admin, "/readyz").await.0 == 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(get(admin, "/readyz").await, (503, "not ready: draining: nothing new is taken\n".to_owned()));
    assert_eq!(get(admin, "/healthz").await.0, 200, "it is alive all the same");
    drain.abort();
}

#[tokio::test]
async fn beside_a_proxy_there_is_the_dashboard_and_nobody_claims() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.admin = Some("127.0.0.1:0".parse().expect("is an address"));
    let proxy = start(settings).await;
    let admin = proxy.admin().expect("listens");
    let keyed =
        "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: t\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n";
    Client::connect(proxy.listening()).await.ask(keyed).await;
    assert!(get(admin, "/").await.1.contains("<title>"), "is a page");
    let (status, records) = get(admin, "/v1/records").await;
    assert!(status == 200 && records.contains("\"state\":\"done\""), "{status} {records}");
    let claim = "{\"operation\":\"o\",\"name\":\"n\"}";
    let request = format!(
        "POST /v1/claim HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{claim}",
        claim.len()
    );
    let refused = Client::connect(admin).await.ask(&request).await;
    assert_eq!(refused.status, 404);
    assert!(refused.text().contains("semel serve"), "{}", refused.text());
}

#[tokio::test]
async fn what_others_can_reach_shows_no_keys_without_tokens() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.admin = Some("0.0.0.0:0".parse().expect("is an address"));
    let proxy = start(settings).await;
    let port = proxy.admin().expect("listens").port();
    let admin = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    for (path, status) in
        [("/healthz", 200), ("/metrics", 200), ("/", 404), ("/keys", 404), ("/v1/records", 403)]
    {
        assert_eq!(get(admin, path).await.0, status, "{path}");
    }
}

#[tokio::test]
async fn tokens_are_for_the_dashboard_and_leave_health_and_metrics_open() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.admin = Some("127.0.0.1:0".parse().expect("is an address"));
    let tokens = Tokens::parse(&Token::new(Role::Read, &[]).toml(), "tokens.toml").expect("is one");
    let proxy = start_with_tokens(settings, tokens).await;
    let admin = proxy.admin().expect("listens");
    for (path, status) in [("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/v1/records", 401)] {
        assert_eq!(get(admin, path).await.0, status, "{path}");
    }
}
