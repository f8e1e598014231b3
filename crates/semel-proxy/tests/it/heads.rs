//! What becomes of a request's head on its way, and of a response's on its way back.

use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;
use semel_proxy::UnderscoresInHeaders;

#[tokio::test]
async fn headers_between_two_neighbours_are_not_passed_on() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    let answer = client
        .ask(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\n\
             Proxy-Authorization: Basic eA==\r\nProxy-Thing: 2\r\nProxy: evil\r\nTE: gzip, trailers\r\nX-Kept: 3\r\n\r\n",
        )
        .await;
    let seen = answer.text();
    for name in ["x-secret", "keep-alive", "proxy", "gzip"] {
        assert!(!seen.contains(name), "{name} is in {seen}");
    }
    assert!(seen.contains("te: trailers\n") && seen.contains("x-kept: 3\n"), "{seen}");
}

#[tokio::test]
async fn a_response_loses_what_was_for_the_proxy_alone() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        line.write(
            "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=1\r\nX-End: 2\r\n\
             Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n",
        )
        .await;
    })
    .await;
    let proxy = start(settings(service.address)).await;
    let answer = Client::connect(proxy.listening()).await.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!((answer.header("x-hop"), answer.header("keep-alive")), (None, None));
    assert_eq!(answer.header("x-end"), Some("2"));
    let cookies: Vec<_> = answer.headers.iter().filter(|(name, _)| name == "set-cookie").collect();
    assert_eq!(cookies.len(), 2);
}

#[tokio::test]
async fn what_a_stranger_says_of_its_origin_is_replaced() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    let answer = client
        .ask(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 7.7.7.7\r\nX-Real-IP: 6.6.6.6\r\n\
             Forwarded: for=6.6.6.6\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: https\r\n\r\n",
        )
        .await;
    let seen = answer.text();
    assert!(!seen.contains("6.6.6.6") && !seen.contains("7.7.7.7") && !seen.contains("evil"), "{seen}");
    assert!(
        seen.contains("x-forwarded-for: 127.0.0.1\n") && seen.contains("x-forwarded-proto: http\n"),
        "{seen}"
    );
}

#[tokio::test]
async fn what_a_trusted_proxy_says_is_passed_on_with_its_own_address() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.trusted_proxies = vec!["127.0.0.0/8".parse().expect("is a network")];
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    let answer = client
        .ask("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n\r\n")
        .await;
    let seen = answer.text();
    assert!(seen.contains("x-forwarded-for: 6.6.6.6, 127.0.0.1\n"), "{seen}");
    assert!(seen.contains("x-forwarded-proto: https\n"), "{seen}");
}

#[tokio::test]
async fn names_with_underscores_are_dropped_unless_they_are_to_pass() {
    let service = Service::mirror().await;
    let request = "GET / HTTP/1.1\r\nHost: a\r\nX_Forwarded_For: 6.6.6.6\r\nX_Kept: 1\r\nX-Kept: 2\r\n\r\n";
    let proxy = start(settings(service.address)).await;
    let seen = Client::connect(proxy.listening()).await.ask(request).await;
    assert!(!seen.text().contains('_') && seen.text().contains("x-kept: 2\n"), "{}", seen.text());
    let mut passing = settings(service.address);
    passing.underscores_in_headers = UnderscoresInHeaders::Pass;
    let proxy = start(passing).await;
    let seen = Client::connect(proxy.listening()).await.ask(request).await;
    assert!(seen.text().contains("x_kept: 1\n"), "{}", seen.text());
}

#[tokio::test]
async fn the_upstreams_own_path_comes_before_every_path() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.upstream = format!("http://{}/base/", service.address).parse().expect("is a URL");
    let proxy = start(settings).await;
    let answer = Client::connect(proxy.listening()).await.ask("GET /x?y=1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(answer.text().starts_with("GET /base/x?y=1 "), "{}", answer.text());
}

#[tokio::test]
async fn a_whole_url_as_a_target_is_taken_if_its_host_is_the_hosts() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    for target in ["http://a/x", "http://A/x", "HTTP://a/x"] {
        let answer = client.ask(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        assert!(answer.text().starts_with("GET /x "), "{target}: {}", answer.text());
    }
    let answer = client.ask("GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer.status, 400);
    assert!(client.has_ended().await, "what was refused so is not trusted with another request");
}

#[tokio::test]
async fn what_must_not_be_passed_on_is_refused_with_a_problem() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    for (request, status) in [
        ("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 405),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET http://u@a/ HTTP/1.1\r\nHost: u@a\r\n\r\n", 400),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("TRACE / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
    ] {
        let answer = Client::connect(proxy.listening()).await.ask(request).await;
        assert_eq!(answer.status, status, "{request:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{request:?}");
        assert!(answer.text().contains("\"code\":\"request_malformed\""), "{}", answer.text());
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn an_old_client_without_a_host_is_served_under_the_upstreams_name() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    let answer = Client::connect(proxy.listening()).await.ask("GET /old HTTP/1.0\r\n\r\n").await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().starts_with("GET /old HTTP/1.1\n"), "{}", answer.text());
    assert!(answer.text().contains(&format!("host: {}\n", service.address)), "{}", answer.text());
}

#[tokio::test]
async fn everything_that_asks_options_of_the_server_itself_passes() {
    let service = Service::scripted(|mut line| async move {
        let head = line.head().await;
        let first = head.lines().next().unwrap_or_default().to_owned();
        line.write(format!("HTTP/1.1 200 OK\r\nX-Seen: {first}\r\nContent-Length: 0\r\n\r\n")).await;
    })
    .await;
    let proxy = start(settings(service.address)).await;
    let answer = Client::connect(proxy.listening()).await.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer.header("x-seen"), Some("OPTIONS * HTTP/1.1"));
}
