//! Every decision by its name.

use std::time::Duration;

use serde_json::json;

use super::server::{Server, claim, with};

const PERMIT_ID: &str = "00112233445566778899aabbccddeeff";

#[tokio::test]
async fn a_claim_runs_once_and_its_outcome_is_replayed() {
    let server = Server::start().await;
    let run = server.decide("/v1/claim", &claim("a")).await;
    assert_eq!(
        (&run["decision"], &run["attempt"], &run["lease_ms"]),
        (&json!("run"), &json!(1), &json!(60_000))
    );
    assert_eq!(run["id"].as_str().unwrap().len(), 64);
    assert_eq!(run["steps"], json!([]));
    let busy = server.decide("/v1/claim", &claim("a")).await;
    assert_eq!((&busy["decision"], &busy["owner"]), (&json!("busy"), &json!("local")));
    assert!(busy["retry_after_ms"].as_u64().unwrap() > 50_000);
    let done = server
        .decide("/v1/complete", &json!({"permit": run["permit"], "outcome": {"json": {"charge": "ch_1"}}}))
        .await;
    assert_eq!(done["decision"], "done");
    let replay = server.decide("/v1/claim", &claim("a")).await;
    assert_eq!(replay["decision"], "replay");
    assert_eq!(replay["remembered_until"], done["remembered_until"]);
    assert_eq!(
        replay["outcome"],
        json!({"kind": "success", "bytes": 17, "json": {"charge": "ch_1"}, "references": [], "details": null})
    );
}

#[tokio::test]
async fn a_lost_reply_is_made_good_by_asking_again_with_the_same_permit_id() {
    let server = Server::start().await;
    let claim = with(claim("a"), json!({"permit_id": PERMIT_ID}));
    let first = server.decide("/v1/claim", &claim).await;
    let again = server.decide("/v1/claim", &claim).await;
    assert_eq!(again["decision"], "run");
    assert_eq!((&again["attempt"], &again["fence"]), (&first["attempt"], &first["fence"]));
    let other = with(claim.clone(), json!({"permit_id": PERMIT_ID.replace("00", "01")}));
    assert_eq!(
        server.decide("/v1/claim", &other).await["decision"],
        "busy",
        "another permit id is another ask"
    );
}

#[tokio::test]
async fn another_request_under_the_same_key_is_a_mismatch() {
    let server = Server::start().await;
    let first = with(claim("a"), json!({"request": {"amount": 1, "currency": "EUR"}}));
    assert_eq!(server.decide("/v1/claim", &first).await["decision"], "run");
    let text =
        r#"{"scope":["acme"],"operation":"charge","name":"a","request":{"currency":"EUR","amount":1}}"#;
    assert_eq!(server.post("/v1/claim", text).await.json()["decision"], "busy", "the order does not matter");
    let other = with(claim("a"), json!({"request": {"amount": 2, "currency": "EUR"}}));
    let mismatch = server.decide("/v1/claim", &other).await;
    assert_eq!((&mismatch["decision"], &mismatch["mismatches"]), (&json!("mismatch"), &json!(1)));
    let digits = with(claim("a"), json!({"fingerprint": "ab".repeat(32)}));
    assert_eq!(server.decide("/v1/claim", &digits).await["mismatches"], 2);
    let null = with(claim("a"), json!({"request": null}));
    assert_eq!(server.decide("/v1/claim", &null).await["decision"], "mismatch", "null is a request, too");
}

#[tokio::test]
async fn a_request_is_compared_by_its_meaning_and_never_merged_with_its_neighbour() {
    let server = Server::start().await;
    let claimed = async |name: &str, request: &str| {
        let claim =
            format!(r#"{{"scope":["acme"],"operation":"charge","name":"{name}","request":{request}}}"#);
        server.post("/v1/claim", claim).await.json()["decision"].as_str().unwrap().to_owned()
    };
    let different = [
        ("18446744073709551616", "18446744073709551617"),
        ("100000000000000000000000", "100000000000000000000001"),
        (r#"{"amount":1,"amount":2}"#, r#"{"amount":2}"#),
        (r#"{"amount":null}"#, "{}"),
        ("[1,2]", "[2,1]"),
    ];
    for (at, (first, other)) in different.into_iter().enumerate() {
        let name = format!("different-{at}");
        assert_eq!(claimed(&name, first).await, "run");
        assert_eq!(claimed(&name, other).await, "mismatch", "{first} and {other}");
        assert_eq!(claimed(&name, first).await, "busy", "{first} and itself");
    }
    // Too deep for a canonical form, so compared byte by byte; read without recursion.
    let deep = |value: &str| format!("{}{value}{}", "[".repeat(5_000), "]".repeat(5_000));
    assert_eq!(claimed("deep", &deep("1")).await, "run");
    assert_eq!(claimed("deep", &deep("1")).await, "busy");
    assert_eq!(claimed("deep", &deep("1.0")).await, "mismatch");
    let same = [
        ("1.0", "1"),
        ("1e2", "100"),
        (r#""\u0041""#, r#""A""#),
        (r#"{"a":1,"b":2}"#, r#"{ "b": 2.0, "a": 1 }"#),
    ];
    for (at, (first, other)) in same.into_iter().enumerate() {
        let name = format!("same-{at}");
        assert_eq!(claimed(&name, first).await, "run");
        assert_eq!(claimed(&name, other).await, "busy", "{first} and {other}");
    }
}

#[tokio::test]
async fn a_run_that_was_taken_over_is_lost() {
    let server = Server::start().await;
    let short = with(claim("a"), json!({"lease_ms": 1}));
    let first = server.decide("/v1/claim", &short).await;
    let second = server.take_over(&claim("a")).await;
    assert_eq!((&second["decision"], &second["attempt"]), (&json!("run"), &json!(2)));
    assert!(second["fence"].as_u64() > first["fence"].as_u64());
    let old = json!({"permit": first["permit"]});
    assert_eq!(server.decide("/v1/complete", &old).await, json!({"decision": "lost"}));
    assert_eq!(server.decide("/v1/renew", &old).await, json!({"decision": "lost"}));
    let step = with(old.clone(), json!({"name": "s", "json": 1}));
    assert_eq!(server.decide("/v1/step", &step).await, json!({"decision": "lost"}));
    assert_eq!(server.decide("/v1/release", &old).await, json!({"decision": "not_holding"}));
    let hold = with(old, json!({"reason": "why"}));
    assert_eq!(server.decide("/v1/hold", &hold).await, json!({"decision": "not_holding"}));
    let new = json!({"permit": second["permit"]});
    assert_eq!(server.decide("/v1/renew", &new).await, json!({"decision": "renewed", "lease_ms": 60_000}));
    assert_eq!(server.decide("/v1/complete", &new).await["decision"], "done");
}

#[tokio::test]
async fn a_released_run_is_run_again_and_a_held_one_by_nobody() {
    let server = Server::start().await;
    let run = server.decide("/v1/claim", &claim("a")).await;
    let release = json!({"permit": run["permit"], "reason": "the provider was down"});
    assert_eq!(server.decide("/v1/release", &release).await, json!({"decision": "released"}));
    let run = server.decide("/v1/claim", &claim("a")).await;
    assert_eq!((&run["decision"], &run["attempt"]), (&json!("run"), &json!(2)));
    let hold = json!({"permit": run["permit"], "reason": "nobody knows"});
    assert_eq!(server.decide("/v1/hold", &hold).await, json!({"decision": "held"}));
    let refused = server.decide("/v1/claim", &claim("a")).await;
    assert_eq!((&refused["decision"], &refused["reason"]), (&json!("held"), &json!("nobody knows")));
}

#[tokio::test]
async fn a_lapsed_lease_means_what_the_claim_said() {
    let server = Server::start().await;
    let hold = with(claim("a"), json!({"lease_ms": 1, "lapse": "hold"}));
    server.decide("/v1/claim", &hold).await;
    assert_eq!(server.take_over(&claim("a")).await["reason"], "lapsed");
    let once = with(claim("b"), json!({"lease_ms": 1, "attempts_max": 1}));
    server.decide("/v1/claim", &once).await;
    assert_eq!(server.take_over(&once).await["reason"], "attempts");
    let mine = with(claim("c"), json!({"owner": "me", "reentrant": true}));
    server.decide("/v1/claim", &mine).await;
    let again = server.decide("/v1/claim", &mine).await;
    assert_eq!((&again["decision"], &again["attempt"]), (&json!("run"), &json!(2)));
}

#[tokio::test]
async fn an_outcome_that_is_already_there_is_recorded_once() {
    let server = Server::start().await;
    let body = |json: i32| with(claim("a"), json!({"outcome": {"json": json, "kind": "seen"}}));
    let recorded = server.decide("/v1/record_once", &body(1)).await;
    assert_eq!(recorded["decision"], "recorded");
    let replay = server.decide("/v1/record_once", &body(2)).await;
    assert_eq!((&replay["decision"], &replay["outcome"]["json"]), (&json!("replay"), &json!(1)));
    assert_eq!(replay["outcome"]["kind"], "seen");
    server.decide("/v1/claim", &claim("b")).await;
    let busy = with(claim("b"), json!({"outcome": {}}));
    assert_eq!(server.decide("/v1/record_once", &busy).await["decision"], "busy");
}

#[tokio::test]
async fn a_claim_that_waits_is_answered_when_the_run_ends() {
    let server = Server::start().await;
    let run = server.decide("/v1/claim", &claim("a")).await;
    let waits = with(claim("a"), json!({"wait_ms": 30_000}));
    let (complete, path) = (json!({"permit": run["permit"]}), "/v1/complete");
    let ended = async {
        let mut waiting = server.served.semel.waiting();
        waiting.wait_for(|count| *count > 0).await.expect("somebody waits");
        server.decide(path, &complete).await
    };
    let both = async { tokio::join!(server.decide("/v1/claim", &waits), ended) };
    let (replay, done) = tokio::time::timeout(Duration::from_secs(10), both).await.expect("is answered");
    assert_eq!((&replay["decision"], &done["decision"]), (&json!("replay"), &json!("done")));
    server.decide("/v1/claim", &claim("b")).await;
    server.served.waits.drain();
    let waits = with(claim("b"), json!({"wait_ms": 60_000}));
    let busy = tokio::time::timeout(Duration::from_secs(10), server.decide("/v1/claim", &waits)).await;
    assert_eq!(busy.expect("nobody waits once the server stops")["decision"], "busy");
}

#[tokio::test]
async fn a_renewal_that_comes_after_its_own_complete_has_lost_nothing() {
    let server = Server::start().await;
    let run = server.decide("/v1/claim", &claim("a")).await;
    let permit = json!({"permit": run["permit"]});
    assert_eq!(server.decide("/v1/complete", &permit).await["decision"], "done");
    assert_eq!(server.decide("/v1/renew", &permit).await, json!({"decision": "done"}));
    assert_eq!(server.decide("/v1/resume", &permit).await, json!({"decision": "done"}));
    let many = server.decide("/v1/renew/batch", &json!({"items": [permit]})).await;
    assert_eq!(many["answers"], json!([{"decision": "done"}]));
    assert_eq!(server.served.semel.stats().lost, 0);
}

#[tokio::test]
async fn a_label_is_kept_shown_and_bounded() {
    let server = Server::start().await;
    let labelled = |label: &str| with(claim("a"), json!({"label": label}));
    assert_eq!(server.decide("/v1/claim", &labelled("POST /charges")).await["decision"], "run");
    let shown = server.look("/v1/record?scope=acme&operation=charge&name=a").await;
    assert_eq!(shown["record"]["label"], "POST /charges");
    let body = labelled(&"x".repeat(257)).to_string();
    assert_eq!(server.post("/v1/claim", body).await.problem(), (400, "invalid_request".to_owned()));
}
