//! What a person sees with psql, and what the table itself refuses.

use std::time::Duration;

use semel::record::{AttemptEnd, HoldReason, State, StateKind};
use semel::store::{Filter, Scan, Store};
use semel::{Claim, Key, Lapse, Outcome, OutcomeKind, Semel};
use semel_postgres::PostgresStore;

use crate::server::{alone, client, granted, key};

#[tokio::test]
async fn a_row_says_in_words_what_happened() {
    let (store, url) = alone().await;
    let semel = Semel::builder(store).owner("till-7").build().unwrap();
    let key = key("charge");
    let client = client(&url).await;
    let row = async |columns: &str| {
        let text = format!("SELECT ({columns})::text FROM semel_records");
        client.query_one(&text, &[]).await.unwrap().get::<_, String>(0)
    };
    let permit = granted(&semel, Claim::new(&key).first_event("evt_1").label("POST /charges")).await;
    let name = key.name();
    assert_eq!(
        row("scope, operation, name, state, attempt, owner, lease, first_event").await,
        format!("(\"{{acme,eu}}\",charge,{name},running,1,till-7,00:01:00,evt_1)")
    );
    let outcome =
        Outcome::success("paid").reference("charge", "ch_1").details(&serde_json::json!({"eur": 42}));
    permit.complete(outcome).await.unwrap();
    assert_eq!(
        row("state, owner, retention, outcome_kind, convert_from(outcome, 'UTF8'), details::json->>'eur'")
            .await,
        "(done,till-7,24:00:00,success,paid,42)"
    );
    // Kept as long as the claim asked for: moving it by the lease would write every index anew.
    let kept = "keep_until = first_seen_at + retention + '1 minute'";
    assert_eq!(row(&format!("since = changed_at, {kept}, fence < version")).await, "(t,t,t)");
    assert_eq!(row("label, granted_at = first_seen_at").await, "(\"POST /charges\",t)");
    let created = r#"[{"kind": "charge", "id": "ch_1"}]"#;
    assert_eq!(row(&format!("outcome_references @> '{created}', 1")).await, "(t,1)");
}

#[tokio::test]
async fn a_row_that_no_state_allows_is_refused_by_the_table() {
    let (store, url) = alone().await;
    let semel = Semel::new(store);
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key)).await;
    let client = client(&url).await;
    for nonsense in [
        "outcome_kind = 'success', outcome = ''",
        "lease = NULL",
        "state = 'done'",
        "state = 'held', reason = 'lapsed'",
        "state = 'lost'",
        "lapse = 'maybe'",
        "reason = 'lapsed'",
    ] {
        let error = client.batch_execute(&format!("UPDATE semel_records SET {nonsense}")).await.unwrap_err();
        let code = error.code().map(tokio_postgres::error::SqlState::code);
        assert_eq!(code, Some("23514"), "{nonsense}: {error}");
    }
    permit.complete(Outcome::success("paid")).await.unwrap();
    let error = client.batch_execute("UPDATE semel_records SET lease = '1 minute'").await.unwrap_err();
    assert!(error.to_string().contains("db error"), "{error}");
}

#[tokio::test]
async fn texts_that_the_server_would_refuse_come_back_whole() {
    let (store, _) = alone().await;
    let semel = Semel::builder(store).replays_kept(0, 0).build().unwrap();
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key).owner("a\0b").first_event("\0\u{f8ff}")).await;
    let outcome = Outcome::success("\0").reference("p\0", "\u{f8ff}0").reference("primary", "\0");
    permit.complete(outcome.clone()).await.unwrap();
    let record = semel.get(&key).await.unwrap().unwrap();
    assert_eq!(record.outcome(), Some(&outcome));
    assert_eq!(record.first_event.as_deref(), Some("\0\u{f8ff}"));
}

#[tokio::test]
async fn the_few_that_are_held_are_found_by_an_index() {
    let (store, url) = alone().await;
    let client = client(&url).await;
    client.batch_execute("SET enable_seqscan = off").await.unwrap();
    let held = "keep_until IS NULL";
    let page = format!("EXPLAIN SELECT id FROM semel_records WHERE id > '' AND {held} ORDER BY id LIMIT 10");
    let plan = client.query(&page, &[]).await.unwrap();
    let plan: Vec<String> = plan.iter().map(|line| line.get(0)).collect();
    assert!(plan.join("\n").contains("semel_records_kept_for_ever"), "{plan:?}");
    let empty = store.scan(Scan { limit: 10, ..Scan::default() }).await.unwrap().value;
    assert_eq!((empty.records.len(), empty.next), (0, None));
}

#[tokio::test]
async fn a_batch_that_holds_one_record_two_hundred_times_is_answered_in_one_go() {
    let (store, url) = alone().await;
    let client = client(&url).await;
    let versions = "SELECT last_value FROM semel_version";
    let before: i64 = client.query_one(versions, &[]).await.unwrap().get(0);
    let semel = Semel::new(store);
    let key = key("charge");
    // All at the same time, so that the engine sends most of them together.
    let claims: Vec<_> = (0..200)
        .map(|_| {
            let (semel, key) = (semel.clone(), key.clone());
            tokio::spawn(async move { semel.claim(Claim::new(&key)).await.map(|decision| decision.as_str()) })
        })
        .collect();
    let mut words = Vec::new();
    for claim in claims {
        words.push(claim.await.unwrap().unwrap());
    }
    words.sort_unstable();
    assert_eq!((words.len(), words.iter().filter(|word| **word == "run").count()), (200, 1), "{words:?}");
    assert!(words.iter().all(|word| matches!(*word, "run" | "busy")), "{words:?}");
    let after: i64 = client.query_one(versions, &[]).await.unwrap().get(0);
    assert!(after - before < 10, "{} numbers were drawn for one write", after - before);
}

/// An engine that remembers nothing by itself.
fn forgetful(store: PostgresStore) -> Semel {
    Semel::builder(store).replays_kept(0, 0).no_sweep().build().unwrap()
}

#[tokio::test]
async fn a_word_of_the_application_is_not_taken_for_one_of_semels() {
    let (store, url) = alone().await;
    let semel = forgetful(store);
    for kind in
        [OutcomeKind::Success, OutcomeKind::Other("success".into()), OutcomeKind::Other("failure".into())]
    {
        let key = key("charge");
        let outcome = Outcome::new(kind, "x");
        granted(&semel, Claim::new(&key)).await.complete(outcome.clone()).await.unwrap();
        assert_eq!(semel.get(&key).await.unwrap().unwrap().outcome(), Some(&outcome));
    }
    let successes = "SELECT count(*) FROM semel_records WHERE outcome_kind = 'success'";
    assert_eq!(client(&url).await.query_one(successes, &[]).await.unwrap().get::<_, i64>(0), 1);
    for reason in ["lapsed", "attempts", "look at it"] {
        let key = key("charge");
        granted(&semel, Claim::new(&key)).await.hold(reason).await.unwrap();
        let record = semel.get(&key).await.unwrap().unwrap();
        let State::Held(held) = &record.state else { panic!("{record:?}") };
        assert_eq!(held.reason, HoldReason::Unknown(reason.into()));
    }
}

#[tokio::test]
async fn grants_and_past_attempts_are_kept_in_every_state() {
    let (store, _) = alone().await;
    let semel = forgetful(store);
    let key = key("charge");
    for attempt in 1..=9 {
        let owner = format!("till-{attempt}");
        let permit = granted(&semel, Claim::new(&key).owner(&owner)).await;
        permit.release("again").await.unwrap();
        let record = semel.get(&key).await.unwrap().unwrap();
        let grant = record.state.grant();
        assert_eq!(
            (grant.permit_id, grant.fence.get(), &*grant.owner),
            (permit.id(), permit.fence(), &*owner)
        );
        let ended: Vec<_> = record.history().map(|ended| (ended.number, ended.end)).collect();
        let kept = (attempt.max(8) - 7..=attempt).map(|number| (number, AttemptEnd::Released));
        assert_eq!(ended, kept.collect::<Vec<_>>());
    }
    let held = granted(&semel, Claim::new(&key).label("POST /charges")).await;
    held.hold("look at it").await.unwrap();
    let record = semel.get(&key).await.unwrap().unwrap();
    assert_eq!((record.state.grant().permit_id, record.label.as_deref()), (held.id(), Some("POST /charges")));
    assert_eq!(record.past_attempts.len(), 7);
}

async fn listed(store: &PostgresStore, state: StateKind) -> Vec<Key> {
    let filter = Filter { states: vec![state], ..Filter::default() };
    let page = store.scan(Scan { filter, limit: 10, ..Scan::default() }).await.unwrap().value;
    page.records.iter().map(|record| record.key.clone()).collect()
}

#[tokio::test]
async fn a_run_that_lapsed_under_hold_is_listed_as_held_before_any_claim_says_so() {
    let (store, url) = alone().await;
    let semel = forgetful(store.clone());
    let (hold, rerun) = (key("hold"), key("rerun"));
    for (key, lapse) in [(&hold, Lapse::Hold), (&rerun, Lapse::Rerun)] {
        granted(&semel, Claim::new(key).lapse(lapse).lease(Duration::from_mins(1))).await;
    }
    assert_eq!(listed(&store, StateKind::Held).await, []);
    assert_eq!(listed(&store, StateKind::Running).await.len(), 2);
    // The server's clock is not ours to move, so the leases are: both lapsed a moment ago.
    let lapse = "UPDATE semel_records SET leased_at = leased_at - lease, version = nextval('semel_version')";
    client(&url).await.batch_execute(lapse).await.unwrap();
    assert_eq!(listed(&store, StateKind::Held).await, std::slice::from_ref(&hold));
    assert_eq!(listed(&store, StateKind::Running).await, [rerun]);
    let stored = "SELECT count(*) FROM semel_records WHERE state = 'held'";
    assert_eq!(
        client(&url).await.query_one(stored, &[]).await.unwrap().get::<_, i64>(0),
        0,
        "nothing was written"
    );
}
