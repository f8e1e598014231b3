//! What a person sees with psql, and what the table itself refuses.

use semel::store::{Scan, Store};
use semel::{Claim, Outcome, Semel};

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
    let permit = granted(&semel, Claim::new(&key).first_event("evt_1")).await;
    let name = key.name();
    assert_eq!(
        row("scope, operation, name, state, attempt, owner, lease, first_event").await,
        format!("(\"{{acme,eu}}\",charge,{name},running,1,till-7,00:01:00,evt_1)")
    );
    let outcome =
        Outcome::success(*b"paid").primary_reference("ch_1").details(&serde_json::json!({"eur": 42}));
    permit.complete(outcome).await.unwrap();
    assert_eq!(
        row("state, owner, retention, outcome_kind, convert_from(outcome, 'UTF8'), primary_reference, details::json->>'eur'").await,
        "(done,,24:00:00,success,paid,ch_1,42)"
    );
    assert_eq!(row("since = changed_at, keep_until = since + retention, fence < version").await, "(t,t,t)");
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
    permit.complete(Outcome::success(*b"paid")).await.unwrap();
    let error = client.batch_execute("UPDATE semel_records SET lease = '1 minute'").await.unwrap_err();
    assert!(error.to_string().contains("db error"), "{error}");
}

#[tokio::test]
async fn texts_that_the_server_would_refuse_come_back_whole() {
    let (store, _) = alone().await;
    let semel = Semel::builder(store).replays_kept(0, 0).build().unwrap();
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key).owner("a\0b").first_event("\0\u{f8ff}")).await;
    let outcome = Outcome::success(*b"\0").primary_reference("p\0").secondary_reference("\u{f8ff}0");
    permit.complete(outcome.clone()).await.unwrap();
    let record = semel.get(&key).await.unwrap().unwrap();
    assert_eq!(record.outcome(), Some(&outcome));
    assert_eq!(record.first_event.as_deref(), Some("\0\u{f8ff}"));
}

#[tokio::test]
async fn the_few_that_are_held_are_found_by_an_index() {
    let (store, url) = alone().await;
    let client = client(&url).await;
    let held = "SELECT id FROM semel_records WHERE id > '' AND state = 'held' ORDER BY id LIMIT 10";
    client.batch_execute("SET enable_seqscan = off").await.unwrap();
    let plan = client.query(&format!("EXPLAIN {held}"), &[]).await.unwrap();
    let plan: Vec<String> = plan.iter().map(|line| line.get(0)).collect();
    assert!(plan.join("\n").contains("semel_records_held"), "{plan:?}");
    let empty = store.scan(Scan { limit: 10, ..Scan::default() }).await.unwrap().value;
    assert_eq!((empty.records.len(), empty.next), (0, None));
}

#[tokio::test]
async fn a_batch_that_holds_one_record_two_hundred_times_is_answered_in_one_go() {
    let (store, url) = alone().await;
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
    let versions = "SELECT last_value FROM semel_version";
    let drawn: i64 = client(&url).await.query_one(versions, &[]).await.unwrap().get(0);
    assert!(drawn < 10, "{drawn} numbers were drawn for one write");
}
