//! From where: names that are this machine's, pages that are the server's own, and what browsers are told.

use semel_server::serve::ServerSettings;

use super::started::{get, post, start, tokens};
use crate::client::Client;

const CLAIM: &str = "{\"operation\":\"charge\",\"name\":\"a\"}";

async fn named(address: std::net::SocketAddr, host: &str, path: &str) -> u16 {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    Client::connect(address).await.ask(&request).await.status
}

#[tokio::test]
async fn without_tokens_only_names_of_this_machine_are_answered() {
    let server = start(ServerSettings::in_memory()).await;
    let address = server.listening();
    for host in ["localhost", "127.0.0.1", "[::1]", &address.to_string()] {
        assert_eq!(named(address, host, "/v1/none").await, 404, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "10.0.0.1"] {
        for path in ["/", "/v1/records", "/v1/events", "/metrics"] {
            assert_eq!(named(address, host, path).await, 421, "{host}{path}");
        }
        assert_eq!(named(address, host, "/healthz").await, 200, "a probe may call it anything");
    }
    // The target's own host counts as the Host, and two that differ are refused.
    let absolute = "GET http://evil.example/v1/none HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(Client::connect(address).await.ask(absolute).await.status, 400);
}

#[tokio::test]
async fn with_tokens_a_server_has_any_name() {
    let server = start(ServerSettings { tokens: tokens(""), ..ServerSettings::in_memory() }).await;
    assert_eq!(named(server.listening(), "semel.example", "/v1/none").await, 404);
}

#[tokio::test]
async fn a_page_of_another_site_claims_nothing() {
    let server = start(ServerSettings::in_memory()).await;
    let ask = async |head: &str| {
        Client::connect(server.listening()).await.ask(&post("/v1/claim", head, CLAIM)).await.status
    };
    for foreign in [
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
    ] {
        assert_eq!(ask(foreign).await, 403, "{foreign}");
    }
    assert_eq!(ask("Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost\r\n").await, 200);
}

#[tokio::test]
async fn every_answer_tells_browsers_what_they_may_do_with_it() {
    let server = start(ServerSettings::in_memory()).await;
    for path in ["/healthz", "/", "/v1/none", "/nothing/here", "/metrics"] {
        let answer = get(server.listening(), path, "").await;
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("x-frame-options", "DENY"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
        let policy = answer.header("content-security-policy").expect("has a policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(answer.header("cache-control").is_some(), "{path}");
    }
}

#[tokio::test]
async fn a_path_that_is_none_and_a_method_that_is_none_are_told_as_problems() {
    let server = start(ServerSettings::in_memory()).await;
    let answer = get(server.listening(), "/v1/clam", "").await;
    assert_eq!((answer.status, answer.header("content-type")), (404, Some("application/problem+json")));
    assert!(answer.text().contains("\"code\":\"not_found\""), "{}", answer.text());
    let answer = get(server.listening(), "/v1/claim", "").await;
    assert_eq!((answer.status, answer.header("content-type")), (405, Some("application/problem+json")));
    assert!(answer.header("allow").is_some_and(|methods| methods.contains("POST")), "{answer:?}");
}
