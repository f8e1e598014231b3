//! Outcomes: as JSON or as base64, byte for byte.

use semel::{Key, Once};
use serde_json::{Value, json};

use super::server::{Server, claim, with};

async fn completed(server: &Server, name: &str, outcome: &str) -> Value {
    let run = server.decide("/v1/claim", &claim(name)).await;
    let body = format!("{{\"permit\":{},\"outcome\":{outcome}}}", run["permit"]);
    let answered = server.post("/v1/complete", body).await;
    assert_eq!(answered.json()["decision"], "done", "{}", answered.text);
    answered.json()
}

#[tokio::test]
async fn json_comes_back_as_the_very_text_that_was_sent() {
    let server = Server::start().await;
    for (name, text) in [
        ("object", r#"{"b": 1.50,  "a":"\u00e9 \/ é", "b2":[1e2, -0, 12345678901234567890123]}"#),
        ("null", "null"),
        ("text", r#""<script>alert(1)</script>""#),
        ("number", "1e400"),
        ("nested", &format!("{}{}", "[".repeat(300), "]".repeat(300))),
    ] {
        completed(&server, name, &format!("{{\"json\": {text} }}")).await;
        let answered = server.post("/v1/claim", claim(name).to_string()).await;
        let wanted = format!("\"bytes\":{},\"json\":{text},", text.len());
        assert!(answered.text.contains(&wanted), "{wanted} is not in {}", answered.text);
    }
}

#[tokio::test]
async fn bytes_come_back_as_base64_and_json_too_if_asked_for() {
    let server = Server::start().await;
    completed(&server, "bytes", r#"{"base64": "AP/+", "kind": "failure"}"#).await;
    let replay = server.decide("/v1/claim", &claim("bytes")).await;
    assert_eq!(
        (&replay["outcome"]["base64"], &replay["outcome"]["kind"]),
        (&json!("AP/+"), &json!("failure"))
    );
    assert!(replay["outcome"].get("json").is_none());
    completed(&server, "json", r#"{"json": [1]}"#).await;
    let replay = server.decide("/v1/claim", &with(claim("json"), json!({"outcome_as": "base64"}))).await;
    assert_eq!((&replay["outcome"]["base64"], replay["outcome"].get("json")), (&json!("WzFd"), None));
    // Room around a value would be lost as JSON.
    completed(&server, "room", r#"{"base64": "IDEg"}"#).await;
    let replay = server.decide("/v1/claim", &claim("room")).await;
    assert_eq!((&replay["outcome"]["base64"], replay["outcome"].get("json")), (&json!("IDEg"), None));
    completed(&server, "nothing", "{}").await;
    let replay = server.decide("/v1/claim", &claim("nothing")).await;
    assert_eq!((&replay["outcome"]["base64"], &replay["outcome"]["bytes"]), (&json!(""), &json!(0)));
}

#[tokio::test]
async fn references_and_details_come_back_with_the_outcome() {
    let server = Server::start().await;
    completed(
        &server,
        "a",
        r#"{"json": 1, "references": [{"kind": "charge", "id": "ch_1"}, {"kind": "invoice", "id": "in_1"}], "details": {"took_ms": 5}}"#,
    )
    .await;
    let outcome = &server.decide("/v1/claim", &claim("a")).await["outcome"];
    assert_eq!(
        *outcome,
        json!({
            "kind": "success",
            "bytes": 1,
            "json": 1,
            "references": [{"kind": "charge", "id": "ch_1"}, {"kind": "invoice", "id": "in_1"}],
            "details": {"took_ms": 5},
        })
    );
}

#[tokio::test]
async fn what_was_done_over_http_is_replayed_in_rust_and_the_other_way() {
    let server = Server::start().await;
    let semel = &server.served.semel;
    completed(&server, "http", r#"{"json": ["ch_1", 42]}"#).await;
    let key = |name| Key::scoped(["acme"], "charge", name).unwrap();
    let ran = async |_| Ok::<_, std::io::Error>(("ran".to_owned(), 0_u32));
    let once = semel.once(&key("http"), &(), ran).await.unwrap();
    assert!(matches!(once, Once::Replayed((id, 42)) if id == "ch_1"));
    let once = semel.once(&key("rust"), &(), ran).await.unwrap();
    assert!(matches!(once, Once::Ran(_)));
    assert_eq!(server.decide("/v1/claim", &claim("rust")).await["outcome"]["json"], json!(["ran", 0]));
}

#[tokio::test]
async fn references_are_bounded_in_number_and_in_length() {
    let server = Server::start().await;
    let run = server.decide("/v1/claim", &claim("a")).await;
    let reference = |kind: &str, id: &str| json!({"kind": kind, "id": id});
    let complete = |references: Vec<serde_json::Value>| {
        json!({"permit": run["permit"], "outcome": {"references": references}}).to_string()
    };
    for wrong in [
        vec![reference("charge", "ch_1"); 101],
        vec![reference("", "ch_1")],
        vec![reference("charge", "")],
        vec![reference("charge", &"x".repeat(1_025))],
        vec![json!({"kind": "charge"})],
        vec![json!("ch_1")],
    ] {
        let refused = server.post("/v1/complete", complete(wrong.clone())).await;
        assert_eq!(refused.problem(), (400, "invalid_request".to_owned()), "{wrong:?}");
    }
    let fine = complete(vec![reference("charge", &"x".repeat(1_024)); 100]);
    assert_eq!(server.post("/v1/complete", fine).await.json()["decision"], "done");
}
