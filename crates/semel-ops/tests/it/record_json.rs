//! What the JSON of a record says.

use std::sync::Arc;
use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Claim, Decision, Key, Outcome, Permit, Semel};
use semel_ops::lookup::walk;
use semel_ops::record_json::{Content, RecordView};
use semel_testkit::ManualClock;
use serde_json::{Value, json};

struct World {
    clock: ManualClock,
    store: Arc<MemoryStore>,
    semel: Semel,
    key: Key,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::at(1_000_000);
        let store = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
        let semel = Semel::builder_shared(store.clone()).no_sweep().build().unwrap();
        Self { clock, store, semel, key: Key::new("charge", "order-1").unwrap() }
    }

    async fn run(&self, owner: &str) -> Permit {
        let claim = Claim::new(&self.key).owner(owner).label("POST /charges").lease(Duration::from_mins(1));
        let Decision::Run(permit) = self.semel.claim(claim).await.unwrap() else { panic!("is free") };
        permit
    }

    async fn json(&self) -> Value {
        let (record, now) = walk::live(&*self.store, self.key.id()).await.unwrap().unwrap();
        serde_json::to_value(RecordView::of(&record, now, Content::Json)).unwrap()
    }
}

#[tokio::test]
async fn a_record_shows_its_label_its_owner_and_how_every_attempt_ended() {
    let world = World::new();
    let first = world.run("worker-1").await;
    let running = world.json().await;
    assert_eq!(
        (&running["label"], &running["owner"], &running["history"], &running["attempts_forgiven"]),
        (&json!("POST /charges"), &json!("worker-1"), &json!([]), &json!(0))
    );
    world.clock.advance(Duration::from_secs(1));
    first.release("the provider was down").await.unwrap();
    let released = world.json().await;
    assert_eq!((&released["state"], &released["owner"]), (&json!("released"), &json!("worker-1")));
    world.run("worker-2").await;
    world.clock.advance(Duration::from_mins(1));
    let third = world.run("worker-3").await;
    world.clock.advance(Duration::from_secs(2));
    let outcome = Outcome::success("{}").reference("charge", "ch_1").reference("account", "acct_9");
    third.complete(outcome).await.unwrap();
    let done = world.json().await;
    assert_eq!(
        done["history"],
        json!([
            { "attempt": 1, "owner": "worker-1", "from": "1970-01-01T00:00:01.000000Z",
              "until": "1970-01-01T00:00:02.000000Z", "ended": "released", "reason": "the provider was down" },
            { "attempt": 2, "owner": "worker-2", "from": "1970-01-01T00:00:02.000000Z",
              "until": "1970-01-01T00:01:02.000000Z", "ended": "lapsed", "reason": null },
            { "attempt": 3, "owner": "worker-3", "from": "1970-01-01T00:01:02.000000Z",
              "until": "1970-01-01T00:01:04.000000Z", "ended": "completed", "reason": null },
        ])
    );
    assert_eq!(
        done["outcome"]["references"],
        json!([{ "kind": "charge", "id": "ch_1" }, { "kind": "account", "id": "acct_9" }])
    );
}
