//! A dead letter, from the list of its pipeline to its second run.

use std::sync::Arc;

use semel_stream::{DeadLetter, Event, EventId, EventState, Pipeline, Requeue, RequeueAsk};

use super::visit::{Browser, guarded, path, until};

async fn put_aside(pipeline: &Pipeline, key: &str, payload: &str) {
    let event = Arc::new(Event::new("orders/0", key, payload.to_owned()).at(7).header("trace", "t-1"));
    let letter =
        DeadLetter { event, key: Some(key.into()), attempts: 3, error: "no such mailbox".to_owned() };
    pipeline.record([(key, letter.outcome(100))]).await.map(drop).expect("is recorded");
}

#[tokio::test]
async fn a_dead_letter_is_requeued_from_its_page_once_and_by_operators_only() {
    let server = guarded().await;
    let semel = &server.served().semel;
    let mails = Pipeline::builder(semel, "mails").scope(["acme", "eu"]).build().expect("is one");
    put_aside(&mails, "bad-1", "{\"to\":\"nobody\"}").await;
    put_aside(&mails, "large", &"x".repeat(200)).await;
    server.served().census.look_soon();
    let letter = mails.receipt_key("bad-1").expect("is a key");
    let page = format!("{}/requeue", path(&letter));

    let mut reader = Browser::logged_in(&server, "reader").await;
    let list = until(&mut reader, "/pipelines", |html| html.contains("bad-1")).await;
    assert!(!list.contains("Requeue…") && list.contains(&path(&letter)), "{list}");
    let seen = reader.get(&path(&letter)).await.text().to_owned();
    assert!(
        seen.contains("no such mailbox")
            && !seen.contains("nobody")
            && !seen.contains("t-1")
            && !seen.contains("Requeue…"),
        "{seen}"
    );
    assert_eq!(reader.get(&page).await.status, 403);

    let mut operator = Browser::logged_in(&server, "acme-operator").await;
    let list = operator.get("/pipelines").await.text().to_owned();
    assert_eq!(list.matches("Requeue…").count(), 1, "the large one has no payload: {list}");
    let seen = operator.get(&path(&letter)).await.text().to_owned();
    for part in ["orders/0", " at 7", "t-1", "&quot;to&quot;: &quot;nobody&quot;", &page] {
        assert!(seen.contains(part), "{part} is not in {seen}");
    }
    let large = mails.receipt_key("large").expect("is a key");
    let asked = operator.get(&format!("{}/requeue", path(&large))).await.text().to_owned();
    assert!(asked.contains("Send it anew") && !asked.contains("name=\"requeues\""), "{asked}");

    let (csrf, requeues) = (operator.hidden(&page, "csrf").await, operator.hidden(&page, "requeues").await);
    let form = [("csrf", csrf.as_str()), ("requeues", &requeues), ("reason", "mailbox made")];
    let forged = [("csrf", "x"), ("requeues", &requeues), ("reason", "mailbox made")];
    assert_eq!(operator.post(&page, &forged).await.status, 403);
    assert_eq!(mails.waiting().await.expect("answers"), []);
    let answer = operator.post(&page, &form).await;
    assert_eq!(answer.header("location"), Some(format!("{}?said=requeued", path(&letter)).as_str()));
    let answer = operator.post(&page, &form).await;
    assert_eq!(answer.header("location"), Some(format!("{}?said=already_waiting", path(&letter)).as_str()));
    assert_eq!(mails.waiting().await.expect("answers").len(), 1);
    let after = operator.get(&format!("{}?said=requeued", path(&letter))).await.text().to_owned();
    assert!(after.contains("waits for a consumer") && !after.contains("Requeue…"), "{after}");
    assert!(operator.get("/pipelines").await.text().contains("requeued, waits for a consumer"));
}

#[tokio::test]
async fn a_form_that_was_shown_before_another_requeue_changes_nothing() {
    let server = guarded().await;
    let mails = Pipeline::new(&server.served().semel, "mails").expect("is one");
    put_aside(&mails, "bad-1", "x").await;
    let letter = mails.receipt_key("bad-1").expect("is a key");
    let page = format!("{}/requeue", path(&letter));
    let mut operator = Browser::logged_in(&server, "operator").await;
    let csrf = operator.hidden(&page, "csrf").await;
    let ask = RequeueAsk { event: EventId::Keyed("bad-1".into()), requeues_before: None };
    assert_eq!(
        mails.requeue(std::slice::from_ref(&ask)).await.expect("answers"),
        [Requeue::Requeued { number: 1 }]
    );
    // A consumer ran it, and it failed again.
    let run = mails.run_key(&ask.event, 1).expect("is a key");
    let event = Arc::new(Event::new("orders/0", "bad-1", "x"));
    let again = DeadLetter { event, key: Some("bad-1".into()), attempts: 1, error: "still none".to_owned() };
    let claim = semel::Claim::new(&run);
    mails.semel().record_once(claim, again.outcome(100)).await.map(drop).expect("is recorded");
    let form = [("csrf", csrf.as_str()), ("requeues", "0"), ("reason", "because")];
    let answer = operator.post(&page, &form).await;
    assert_eq!(answer.header("location"), Some(format!("{}?said=changed", path(&letter)).as_str()));
    let found =
        mails.events(&[ask.event]).await.expect("answers").remove(0).expect("reads").expect("is there");
    assert_eq!((found.state, found.requeue), (EventState::DeadLetter, 1));
    let seen = operator.get(&path(&letter)).await.text().to_owned();
    assert!(seen.contains("requeue 1") && seen.contains(&path(&run)), "{seen}");
}
