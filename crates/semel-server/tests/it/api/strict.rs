//! What is wrong is refused by name, and nothing happens.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::json;

use super::server::{Server, claim, with};

async fn refused(server: &Server, path: &str, body: impl Into<Bytes>) -> (u16, String, String) {
    let answered = server.post(path, body).await;
    let (status, code) = answered.problem();
    (status, code, answered.json()["detail"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn what_a_body_must_not_hold_is_named() {
    let server = Server::start().await;
    for (members, named) in [
        (json!({"leese_ms": 1}), "`leese_ms`"),
        (json!({"outcome": {}}), "`outcome`"),
        (json!({"operation": ""}), "operation is empty"),
        (json!({"name": "a\u{0}b"}), "name holds a control"),
        (json!({"scope": vec!["a"; 9]}), "scope has more than 8"),
        (json!({"scope": "acme"}), "expected a sequence"),
        (json!({"permit_id": "xyz"}), "permit_id is not 32"),
        (json!({"fingerprint": "ab"}), "fingerprint is not 64"),
        (json!({"fingerprint": "ab".repeat(32), "request": 1}), "both a fingerprint and a request"),
        (json!({"lease_ms": 0}), "lease is under"),
        (json!({"lease_ms": 86_400_001}), "lease is over"),
        (json!({"lease_ms": -1}), "lease_ms"),
        (json!({"retention_ms": 0}), "retention is zero"),
        (json!({"attempts_max": 0}), "attempts_max is 0"),
        (json!({"wait_ms": 60_001}), "wait_ms is over"),
        (json!({"lapse": "burn"}), "`burn`"),
        (json!({"outcome_as": "xml"}), "`xml`"),
        (json!({"owner": "o".repeat(1_025)}), "owner is longer"),
    ] {
        let (status, code, detail) =
            refused(&server, "/v1/claim", with(claim("a"), members).to_string()).await;
        assert_eq!((status, &*code), (400, "invalid_request"), "{detail}");
        // Members are named by the reader of JSON, or by whoever reads their values.
        let named = if named == "lease_ms" { "invalid value" } else { named };
        assert!(detail.contains(named), "{named} is not in {detail}");
    }
    assert_eq!(server.look("/v1/records").await["records"], json!([]), "nothing happened");
}

#[tokio::test]
async fn what_is_no_json_is_refused_as_that() {
    let server = Server::start().await;
    for body in [
        "",
        "{",
        "[]",
        "null",
        "{}",
        "\u{feff}{}",
        "{\"operation\":\"o\",\"name\":\"n\"} x",
        "{\"operation\":\"o\",\"operation\":\"o\",\"name\":\"n\"}",
    ] {
        let (status, code, _) = refused(&server, "/v1/claim", body.to_owned()).await;
        assert_eq!((status, &*code), (400, "invalid_request"), "{body}");
    }
    let not_utf8 = Bytes::from_static(b"{\"operation\":\"o\",\"name\":\"\xff\"}");
    assert_eq!(refused(&server, "/v1/claim", not_utf8).await.0, 400);
}

#[tokio::test]
async fn a_body_says_that_it_is_json_and_is_not_too_large() {
    let server = Server::start().await;
    for media_type in
        [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/jsonp")]
    {
        let mut request =
            Request::post("/v1/claim").body(Full::new(Bytes::from(claim("a").to_string()))).unwrap();
        if let Some(media_type) = media_type {
            request.headers_mut().insert("content-type", media_type.parse().unwrap());
        }
        assert_eq!(
            server.ask(request).await.problem(),
            (415, "unsupported_media_type".to_owned()),
            "{media_type:?}"
        );
    }
    let request = Request::post("/v1/claim").header("content-type", "Application/JSON; charset=utf-8");
    let answered = server.ask(request.body(Full::new(Bytes::from(claim("a").to_string()))).unwrap()).await;
    assert_eq!(answered.json()["decision"], "run");
    let permit = &answered.json()["permit"];
    let body = json!({"permit": permit, "outcome": {"json": "x".repeat(4 << 20)}}).to_string();
    let (status, code, detail) = refused(&server, "/v1/complete", body).await;
    assert_eq!((status, &*code), (413, "too_large"), "{detail}");
    let body = json!({"permit": permit, "outcome": {"json": "x".repeat(8 << 20)}}).to_string();
    let (status, code, detail) = refused(&server, "/v1/complete", body).await;
    assert_eq!((status, &*code), (413, "too_large"), "{detail}");
    let largest = json!({"permit": permit, "outcome": {"json": "x".repeat((4 << 20) - 2)}});
    assert_eq!(server.decide("/v1/complete", &largest).await["decision"], "done");
    let replay = server.decide("/v1/claim", &claim("a")).await;
    assert_eq!(replay["outcome"]["bytes"], 4 << 20);
}

#[tokio::test]
async fn what_a_query_must_not_hold_is_named() {
    let server = Server::start().await;
    for (path, named) in [
        ("/v1/records?stat=running", "`stat`"),
        ("/v1/records?state=burning", "state: write"),
        ("/v1/records?limit=0", "limit: write"),
        ("/v1/records?limit=1001", "limit: write"),
        ("/v1/records?limit=1&limit=2", "limit is there twice"),
        ("/v1/records?after=12", "after: an id"),
        ("/v1/records?older_than=10", "older_than"),
        ("/v1/record?operation=charge", "name is missing"),
        ("/v1/record?operation=charge&name=a&wait=61s", "wait is over"),
        ("/v1/record?operation=charge&name=a&outcome_as=xml", "outcome_as"),
        ("/v1/records/xyz", "an id is 64"),
        ("/v1/receipts", "pipeline is missing"),
        ("/v1/stats?a=b", "`a`"),
    ] {
        let answered = server.get(path).await;
        assert_eq!(answered.problem(), (400, "invalid_request".to_owned()), "{path}");
        assert!(answered.text.contains(named), "{named} is not in {}", answered.text);
    }
}

#[tokio::test]
async fn paths_and_methods_that_are_not_there_are_problems() {
    let server = Server::start().await;
    assert_eq!(server.get("/v1/nothing").await.problem(), (404, "not_found".to_owned()));
    assert_eq!(server.get("/v1/claim").await.problem(), (405, "method_not_allowed".to_owned()));
    assert_eq!(
        server.method(Method::DELETE, "/v1/records").await.problem(),
        (405, "method_not_allowed".to_owned())
    );
}
