//! Permits: text that goes to other processes, and steps that outlive a run.

use semel_server::access::Tokens;
use serde_json::{Value, json};

use super::server::{Server, claim, memory, with};

#[tokio::test]
async fn a_permit_is_good_on_every_server_of_its_store() {
    let store = memory().await;
    let (one, other) =
        (Server::on(store.clone(), Tokens::none()).await, Server::on(store, Tokens::none()).await);
    let run = one.decide("/v1/claim", &claim("a")).await;
    let permit = json!({"permit": run["permit"]});
    assert_eq!(other.decide("/v1/renew", &permit).await["decision"], "renewed");
    let step = with(permit.clone(), json!({"name": "charge", "json": "ch_1"}));
    assert_eq!(other.decide("/v1/step", &step).await["decision"], "stored");
    let complete = with(permit, json!({"outcome": {"json": 1}}));
    assert_eq!(
        one.decide("/v1/complete", &complete).await["decision"],
        "done",
        "it heard of nothing meanwhile"
    );
    assert_eq!(
        other.decide("/v1/complete", &complete).await["decision"],
        "done",
        "the same again is harmless"
    );
    let changed = with(complete, json!({"outcome": {"json": 2}}));
    assert_eq!(other.decide("/v1/complete", &changed).await["decision"], "lost", "an outcome never changes");
    assert_eq!(one.decide("/v1/claim", &claim("a")).await["outcome"]["json"], 1);
}

#[tokio::test]
async fn whoever_is_handed_a_permit_is_told_what_its_claim_was_told_and_what_is_finished_by_now() {
    let store = memory().await;
    let (one, other) =
        (Server::on(store.clone(), Tokens::none()).await, Server::on(store, Tokens::none()).await);
    let run = one.decide("/v1/claim", &claim("a")).await;
    let permit = json!({"permit": run["permit"]});
    assert_eq!(one.decide("/v1/resume", &permit).await, run, "nothing happened in between");
    let step = with(permit.clone(), json!({"name": "charge", "json": "ch_1"}));
    one.decide("/v1/step", &step).await;
    let finished = with(run.clone(), json!({"steps": [{"name": "charge", "json": "ch_1"}]}));
    assert_eq!(other.decide("/v1/resume", &permit).await, finished);
    let bytes = other.decide("/v1/resume", &with(permit.clone(), json!({"outcome_as": "base64"}))).await;
    assert_eq!(bytes["steps"], json!([{"name": "charge", "base64": "ImNoXzEi"}]));
    one.decide("/v1/release", &permit).await;
    assert_eq!(other.decide("/v1/resume", &permit).await, json!({"decision": "lost"}));
}

#[tokio::test]
async fn a_permit_of_a_store_that_knows_nothing_of_it_is_lost() {
    let (one, other) = (Server::start().await, Server::start().await);
    let run = one.decide("/v1/claim", &claim("a")).await;
    let permit = json!({"permit": run["permit"]});
    assert_eq!(other.decide("/v1/complete", &permit).await["decision"], "lost");
    assert_eq!(one.decide("/v1/complete", &permit).await["decision"], "done");
}

#[tokio::test]
async fn what_is_no_permit_is_refused_and_settles_nothing() {
    let server = Server::start().await;
    let run = server.decide("/v1/claim", &claim("a")).await;
    let text = run["permit"].as_str().unwrap();
    let upside_down: String = text.chars().rev().collect();
    for wrong in ["", "p1.", "p2.AAAA", &text[..text.len() - 1], &format!("{text}A"), &upside_down] {
        for path in ["/v1/complete", "/v1/release", "/v1/renew", "/v1/resume"] {
            let answered = server.post(path, json!({"permit": wrong}).to_string()).await;
            assert_eq!(answered.problem(), (400, "invalid_request".to_owned()), "{wrong}");
        }
    }
    assert_eq!(server.decide("/v1/claim", &claim("a")).await["decision"], "busy");
}

#[tokio::test]
async fn steps_are_handed_to_whoever_takes_over() {
    let server = Server::start().await;
    let run = server.decide("/v1/claim", &with(claim("a"), json!({"lease_ms": 1}))).await;
    let step =
        |name: &str, value: Value| with(with(json!({"permit": run["permit"]}), json!({"name": name})), value);
    for (name, value) in [
        ("charge", json!({"json": {"id": "ch_1"}})),
        ("bytes", json!({"base64": "AP8="})),
        ("none", json!({"json": null})),
    ] {
        assert_eq!(server.decide("/v1/step", &step(name, value)).await, json!({"decision": "stored"}));
    }
    assert_eq!(
        server.decide("/v1/step", &step("charge", json!({"json": "later"}))).await["decision"],
        "stored"
    );
    let second = server.take_over(&claim("a")).await;
    assert_eq!(
        second["steps"],
        json!([{"name": "charge", "json": {"id": "ch_1"}}, {"name": "bytes", "base64": "AP8="}, {"name": "none", "json": null}]),
        "the first value of a step counts"
    );
    let record = server.look("/v1/record?scope=acme&operation=charge&name=a").await;
    assert_eq!(record["record"]["steps"][0], json!({"name": "charge", "bytes": 13}));
}
