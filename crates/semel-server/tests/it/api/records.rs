//! What people and tools look at.

use std::time::Duration;

use semel::machine::offset::Position;
use semel_stream::Pipeline;
use serde_json::{Value, json};

use super::server::{Server, claim, with};

#[tokio::test]
async fn a_record_is_found_by_its_key_and_by_its_id() {
    let server = Server::start().await;
    let run = server.decide("/v1/claim", &with(claim("a b/ü"), json!({"owner": "worker-7"}))).await;
    let by_key = server.look("/v1/record?scope=acme&operation=charge&name=a%20b%2F%C3%BC").await;
    let record = &by_key["record"];
    assert_eq!(
        (&record["state"], &record["owner"], &record["lapsed"]),
        (&json!("running"), &json!("worker-7"), &json!(false))
    );
    assert_eq!((&record["id"], &record["fence"]), (&run["id"], &run["fence"]));
    assert!(!by_key.to_string().contains("permit"), "whoever knows a permit may settle");
    server.decide("/v1/complete", &json!({"permit": run["permit"], "outcome": {"json": [1]}})).await;
    let id = run["id"].as_str().unwrap();
    let by_id = server.look(&format!("/v1/records/{id}")).await;
    assert_eq!(by_id["record"]["outcome"]["json"], json!([1]));
    let as_base64 = server.look(&format!("/v1/records/{id}?outcome_as=base64")).await;
    assert_eq!(as_base64["record"]["outcome"]["base64"], "WzFd");
    for path in ["/v1/record?operation=charge&name=none", &format!("/v1/records/{}", "0".repeat(64))] {
        assert_eq!(server.get(path).await.problem(), (404, "not_found".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_run_that_lapsed_under_hold_is_held_for_every_reader_and_resolved_without_a_claim() {
    let server = Server::start().await;
    let short = with(claim("a"), json!({"lease_ms": 20, "lapse": "hold", "owner": "worker-7"}));
    let run = server.decide("/v1/claim", &short).await;
    // Answered as soon as the lease has lapsed.
    let record = &server.look("/v1/record?scope=acme&operation=charge&name=a&wait=10s").await["record"];
    assert_eq!((&record["state"], &record["reason"]), (&json!("held"), &json!("lapsed")));
    assert_eq!((&record["owner"], &record["history"][0]["ended"]), (&json!("worker-7"), &json!("lapsed")));
    for (state, found) in [("held", 1), ("running", 0)] {
        let listed = server.look(&format!("/v1/records?state={state}")).await;
        assert_eq!(listed["records"].as_array().map(Vec::len), Some(found), "{state}");
    }
    let path = format!("/v1/records/{}/resolve", run["id"].as_str().unwrap());
    let body = json!({"outcome": {"json": "landed"}, "version": record["version"]});
    assert_eq!(server.decide(&path, &body).await, json!({"decision": "resolved"}));
    assert_eq!(server.decide("/v1/claim", &claim("a")).await["outcome"]["json"], "landed");
}

#[tokio::test]
async fn whoever_waits_for_a_record_is_answered_when_it_is_settled() {
    let server = Server::start().await;
    let run = server.decide("/v1/claim", &claim("a")).await;
    let path = "/v1/record?scope=acme&operation=charge&name=a&wait=30s";
    let (complete, mut waiting) = (json!({"permit": run["permit"]}), server.served.semel.waiting());
    let ended = async {
        waiting.wait_for(|count| *count >= 20).await.expect("they wait");
        server.decide("/v1/complete", &complete).await
    };
    let mut looks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let server = server.with_token("unused");
        looks.spawn(async move { server.look(path).await });
    }
    let both = async { tokio::join!(looks.join_all(), ended).0 };
    let looked = tokio::time::timeout(Duration::from_secs(10), both).await.expect("are answered");
    assert!(looked.iter().all(|looked| looked["record"]["state"] == "done"));
    let short = with(claim("b"), json!({"lease_ms": 20}));
    server.decide("/v1/claim", &short).await;
    let lapsed = server.look("/v1/record?scope=acme&operation=charge&name=b&wait=10s").await;
    assert_eq!((&lapsed["record"]["state"], &lapsed["record"]["lapsed"]), (&json!("running"), &json!(true)));
    server.decide("/v1/claim", &claim("c")).await;
    let still = server.look("/v1/record?scope=acme&operation=charge&name=c&wait=20ms").await;
    assert_eq!((&still["record"]["state"], &still["record"]["lapsed"]), (&json!("running"), &json!(false)));
}

async fn names(server: &Server, path: &str) -> Vec<String> {
    let (mut names, mut after) = (Vec::new(), String::new());
    for _ in 0..100 {
        let page = server.look(&format!("{path}{after}")).await;
        let records = page["records"].as_array().unwrap().clone();
        names.extend(records.iter().map(|record| record["name"].as_str().unwrap().to_owned()));
        let Value::String(next) = &page["next"] else { break };
        after = format!("&after={next}");
    }
    names.sort();
    names
}

#[tokio::test]
async fn records_are_listed_by_filters_and_pages() {
    let server = Server::start().await;
    for number in 0..30 {
        let name = format!("{number:02}");
        let run = server.decide("/v1/claim", &claim(&name)).await;
        if number < 10 {
            server.decide("/v1/hold", &json!({"permit": run["permit"], "reason": "why"})).await;
        }
    }
    server
        .decide("/v1/record_once", &json!({"operation": "mail", "name": "m", "outcome": {"json": "secret"}}))
        .await;
    assert_eq!(names(&server, "/v1/records?limit=7").await.len(), 31);
    let held: Vec<_> = (0..10).map(|number| format!("{number:02}")).collect();
    assert_eq!(names(&server, "/v1/records?state=held&limit=3").await, held);
    assert_eq!(names(&server, "/v1/records?state=held&state=done&limit=100").await.len(), 11);
    assert_eq!(names(&server, "/v1/records?scope=acme&limit=100").await.len(), 30);
    assert_eq!(names(&server, "/v1/records?operation=mail&limit=100").await, ["m"]);
    assert_eq!(names(&server, "/v1/records?name=05&limit=100").await, ["05"]);
    assert_eq!(names(&server, "/v1/records?older_than=1h&limit=100").await.len(), 0);
    assert_eq!(names(&server, "/v1/records?older_than=0s&limit=100").await.len(), 31);
    let one = server.look("/v1/records?scope=acme&operation=charge&name=05").await;
    assert_eq!((one["records"].as_array().unwrap().len(), &one["next"]), (1, &Value::Null));
    let none = server.look("/v1/records?scope=acme&operation=charge&name=05&state=done").await;
    assert_eq!(none["records"], json!([]));
    let listed = server.get("/v1/records?operation=mail").await.text;
    assert!(!listed.contains("secret") && listed.contains("\"bytes\":8"), "{listed}");
}

#[tokio::test]
async fn counts_offsets_and_receipts_are_shown() {
    let server = Server::start().await;
    server.decide("/v1/claim", &claim("a")).await;
    server.decide("/v1/claim", &claim("a")).await;
    let stats = server.look("/v1/stats").await;
    assert_eq!((&stats["decisions"]["run"], &stats["decisions"]["busy"]), (&json!(1), &json!(1)));
    assert_eq!((&stats["store"]["address"], stats["census"]["held"].is_u64()), (&json!("memory:"), true));
    let pipeline = Pipeline::builder(&server.served.semel, "billing").scope(["acme"]).build().unwrap();
    assert_eq!(server.look("/v1/offsets").await, json!({"offsets": [], "next": null}));
    assert_eq!(
        server.look("/v1/receipts?scope=acme&pipeline=billing").await,
        json!({"receipts": [], "next": null})
    );
    pipeline.take("orders").await.unwrap().commit(Position::new(7), Some("e7")).await.unwrap();
    let recorded = pipeline.record([("e7", semel::Outcome::success("paid"))]).await.unwrap();
    assert_eq!(recorded.len(), 1);
    for path in ["/v1/offsets", "/v1/offsets?scope=acme&pipeline=billing"] {
        let offset = &server.look(path).await["offsets"][0];
        assert_eq!((&offset["pipeline"], &offset["scope"]), (&json!("billing"), &json!(["acme"])), "{path}");
        assert_eq!((&offset["stream"], &offset["last_event"]), (&json!("orders"), &json!("e7")));
    }
    assert_eq!(server.look("/v1/offsets?pipeline=other").await["offsets"], json!([]));
    let receipt = &server.look("/v1/receipts?scope=acme&pipeline=billing").await["receipts"][0];
    assert_eq!(
        (&receipt["event"], &receipt["state"], &receipt["output"]),
        (&json!("e7"), &json!("processed"), &json!("paid"))
    );
}
