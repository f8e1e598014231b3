//! Many asks in one request: in order, each by itself.

use serde_json::{Value, json};

use super::server::{Server, claim, with};

fn words(answers: &Value) -> Vec<&str> {
    answers["answers"].as_array().unwrap().iter().map(|answer| answer["decision"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn answers_come_in_the_order_of_the_items_and_one_error_undoes_nothing() {
    let server = Server::start().await;
    server.decide("/v1/record_once", &with(claim("done"), json!({"outcome": {"json": 7}}))).await;
    let items = json!([claim("a"), claim("done"), {"operation": "charge", "name": ""}, claim("b"), claim("a"),
        with(claim("c"), json!({"wait_ms": 5}))]);
    let decided = server.decide("/v1/claim/batch", &json!({"items": items})).await;
    assert_eq!(words(&decided), ["run", "replay", "error", "run", "busy", "error"]);
    let answers = &decided["answers"];
    assert_eq!(answers[1]["outcome"]["json"], 7);
    assert_eq!(
        (&answers[2]["problem"]["code"], &answers[2]["problem"]["status"]),
        (&json!("invalid_request"), &json!(400))
    );
    assert!(answers[5]["problem"]["detail"].as_str().unwrap().contains("wait_ms"));
    let permits =
        json!([{"permit": answers[0]["permit"]}, {"permit": "p1.AAAA"}, {"permit": answers[3]["permit"]}]);
    let renewed = server.decide("/v1/renew/batch", &json!({"items": permits})).await;
    assert_eq!(words(&renewed), ["renewed", "error", "renewed"]);
    let completed = server
        .decide(
            "/v1/complete/batch",
            &json!({"items": [{"permit": answers[3]["permit"], "outcome": {"json": 1}}]}),
        )
        .await;
    assert_eq!(words(&completed), ["done"]);
    let released = server.decide("/v1/release/batch", &json!({"items": permits})).await;
    assert_eq!(words(&released), ["released", "error", "not_holding"]);
}

#[tokio::test]
async fn a_thousand_keys_are_claimed_and_completed_in_two_requests() {
    let server = Server::start().await;
    let items: Vec<_> = (0..1_000).map(|number| claim(&number.to_string())).collect();
    let decided = server.decide("/v1/claim/batch", &json!({"items": items})).await;
    assert!(words(&decided).iter().all(|word| *word == "run"));
    let items: Vec<_> = decided["answers"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(number, run)| json!({"permit": run["permit"], "outcome": {"json": number}}))
        .collect();
    let done = server.decide("/v1/complete/batch", &json!({"items": items})).await;
    assert!(words(&done).iter().all(|word| *word == "done"));
    let replay = server.decide("/v1/claim", &claim("613")).await;
    assert_eq!(replay["outcome"]["json"], 613, "each has its own outcome");
}

#[tokio::test]
async fn outcomes_are_recorded_many_at_a_time() {
    let server = Server::start().await;
    let item = |name: &str, json: u32| with(claim(name), json!({"outcome": {"json": json}}));
    let items = json!({"items": [item("a", 1), item("b", 2), item("a", 3), with(item("c", 1), json!({"outcome": {"json": 1, "base64": ""}}))]});
    let recorded = server.decide("/v1/record_once/batch", &items).await;
    assert_eq!(words(&recorded), ["recorded", "recorded", "replay", "error"]);
    assert_eq!(recorded["answers"][2]["outcome"]["json"], 1);
}

#[tokio::test]
async fn a_batch_has_at_least_one_item_and_at_most_a_thousand() {
    let server = Server::start().await;
    for (items, named) in [(vec![], "items is empty"), (vec![claim("a"); 1_001], "items has 1001")] {
        let answered = server.post("/v1/claim/batch", json!({"items": items}).to_string()).await;
        assert_eq!(answered.problem(), (400, "invalid_request".to_owned()));
        assert!(answered.text.contains(named), "{}", answered.text);
    }
    let unknown = json!({"items": [with(claim("a"), json!({"leese_ms": 1}))]});
    let answered = server.post("/v1/claim/batch", unknown.to_string()).await;
    assert!(answered.status == 400 && answered.text.contains("leese_ms"), "{}", answered.text);
    assert_eq!(server.look("/v1/records").await["records"], json!([]), "nothing happened");
}
