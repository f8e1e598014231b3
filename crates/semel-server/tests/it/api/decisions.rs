//! Every decision by its name.

use serde_json::{Value, json};

use super::server::Server;

const PERMIT_ID: &str = "00112233445566778899aabbccddeeff";

fn claim(name: &str) -> Value {
    json!({"scope": ["acme"], "operation": "charge", "name": name})
}

fn with(mut claim: Value, members: Value) -> Value {
    let (Value::Object(claim_members), Value::Object(more)) = (&mut claim, members) else {
        panic!("both are objects")
    };
    claim_members.extend(more);
    claim
}

#[tokio::test]
async fn a_claim_runs_once_and_its_outcome_is_replayed() {
    let server = Server::start().await;
    let run = server.decide("/v1/claim", &claim("a")).await;
    assert_eq!((&run["decision"], &run["attempt"], &run["lease_ms"]), (&json!("run"), &json!(1), &json!(60_000)));
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
        json!({"kind": "success", "bytes": 17, "json": {"charge": "ch_1"}, "primary": null, "secondary": null, "details": null})
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
    assert_eq!(server.decide("/v1/claim", &other).await["decision"], "busy", "another permit id is another ask");
}
