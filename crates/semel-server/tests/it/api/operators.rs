//! What operators do, and what is written down of it.

use semel::Semel;
use semel_server::access::{Audit, Tokens};
use semel_server::state::AppState;
use serde_json::{Value, json};

use super::server::{Server, claim, memory, with};

async fn held(server: &Server, name: &str) -> Value {
    let run = server.decide("/v1/claim", &claim(name)).await;
    server.decide("/v1/hold", &json!({"permit": run["permit"], "reason": "nobody knows"})).await;
    let id = run["id"].as_str().unwrap();
    server.look(&format!("/v1/records/{id}")).await["record"].clone()
}

fn path(record: &Value, action: &str) -> String {
    format!("/v1/records/{}/{action}", record["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_run_is_taken_away_and_its_complete_is_lost() {
    let server = Server::start().await;
    let run = server.decide("/v1/claim", &claim("a")).await;
    let body = json!({"reason": "its machine is gone"});
    assert_eq!(server.decide(&path(&run, "release"), &body).await, json!({"decision": "released"}));
    assert_eq!(server.decide("/v1/complete", &json!({"permit": run["permit"]})).await["decision"], "lost");
    assert_eq!(server.decide(&path(&run, "release"), &body).await, json!({"decision": "not_held"}));
    let second = server.decide("/v1/claim", &claim("a")).await;
    assert_eq!((&second["decision"], &second["attempt"]), (&json!("run"), &json!(2)));
}

#[tokio::test]
async fn a_held_record_is_resolved_with_an_outcome_or_released() {
    let server = Server::start().await;
    let record = held(&server, "a").await;
    let body = json!({"outcome": {"json": "landed", "references": [{"kind": "charge", "id": "ch_1"}]}, "version": record["version"]});
    assert_eq!(server.decide(&path(&record, "resolve"), &body).await, json!({"decision": "resolved"}));
    assert_eq!(server.decide("/v1/claim", &claim("a")).await["outcome"]["json"], "landed");
    assert_eq!(server.decide(&path(&record, "resolve"), &body).await, json!({"decision": "changed"}));
    let again = json!({"outcome": {"json": "other"}});
    assert_eq!(server.decide(&path(&record, "resolve"), &again).await, json!({"decision": "not_held"}));
    assert_eq!(
        server.decide("/v1/claim", &claim("a")).await["outcome"]["json"],
        "landed",
        "an outcome never changes"
    );
    for (name, action, body) in [
        ("b", "resolve", json!({"release": {"reason": "it did not"}})),
        ("c", "release", json!({"reason": "it did not"})),
    ] {
        let record = held(&server, name).await;
        let word = if action == "resolve" { "resolved" } else { "released" };
        assert_eq!(server.decide(&path(&record, action), &body).await, json!({"decision": word}));
        assert_eq!(server.decide("/v1/claim", &claim(name)).await["attempt"], 2);
    }
}

#[tokio::test]
async fn what_changed_meanwhile_is_left_alone() {
    let server = Server::start().await;
    let first = server.decide("/v1/claim", &claim("a")).await;
    let id = first["id"].as_str().unwrap();
    let version = server.look(&format!("/v1/records/{id}")).await["record"]["version"].as_u64().unwrap();
    // Somebody else ran meanwhile: that is not the run that was looked at.
    server.decide("/v1/release", &json!({"permit": first["permit"]})).await;
    let second = server.decide("/v1/claim", &claim("a")).await;
    let body = |version: u64| json!({"reason": "why", "version": version});
    assert_eq!(
        server.decide(&path(&second, "release"), &body(version)).await,
        json!({"decision": "changed"})
    );
    assert_eq!(server.decide("/v1/claim", &claim("a")).await["decision"], "busy", "nothing was done");
    // A run that renewed its lease is still the same.
    let fence = second["fence"].as_u64().unwrap();
    server.decide("/v1/renew", &json!({"permit": second["permit"]})).await;
    assert_eq!(server.decide(&path(&second, "release"), &body(fence)).await, json!({"decision": "released"}));
    let held = held(&server, "b").await;
    for (body, named) in [
        (json!({}), "give one of response, outcome and release"),
        (json!({"outcome": {}, "release": {"reason": "x"}}), "give one of response, outcome and release"),
        (json!({"release": {"reason": " "}}), "reason is empty"),
        (json!({"reason": "x"}), "`reason`"),
    ] {
        let answered = server.post(&path(&held, "resolve"), body.to_string()).await;
        assert!(answered.status == 400 && answered.text.contains(named), "{}", answered.text);
    }
}

#[tokio::test]
async fn every_action_is_written_down_before_it_is_done_and_after() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let file = folder.path().join("audit.jsonl");
    let store = memory().await;
    let semel = Semel::builder_shared(store.store()).build().expect("is fine");
    let mut noted = AppState::new(semel, store, "memory:".to_owned(), Tokens::none());
    noted.audit = Audit::to_file(&file).expect("opens");
    let server = Server::serve(noted).await;
    let record = held(&server, "a").await;
    server.decide(&path(&record, "resolve"), &json!({"outcome": {"json": 1}})).await;
    server
        .decide(&path(&record, "release"), &with(json!({"reason": "again\n{}"}), json!({"version": 1})))
        .await;
    let text = std::fs::read_to_string(&file).expect("is there");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    let said: Vec<_> = lines
        .iter()
        .map(|line| (line["action"].as_str().unwrap(), line["result"].as_str().unwrap()))
        .collect();
    assert_eq!(
        said,
        [("complete", "asked"), ("complete", "done"), ("release", "asked"), ("release", "refused")]
    );
    std::fs::remove_file(&file).expect("is removed");
    std::fs::create_dir(&file).expect("is in the way");
    let other = held(&server, "b").await;
    let answered = server.post(&path(&other, "release"), json!({"reason": "why"}).to_string()).await;
    assert_eq!(
        answered.problem(),
        (503, "unavailable".to_owned()),
        "what cannot be written down is not done"
    );
    assert_eq!(server.decide("/v1/claim", &claim("b")).await["decision"], "held");
}
