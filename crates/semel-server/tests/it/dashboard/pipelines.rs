//! Pipelines are told with their offsets and what they put aside.

use semel::Outcome;
use semel_stream::{Pipeline, Position, dead_letter};

use super::visit::{Browser, guarded, until};

#[tokio::test]
async fn a_pipeline_is_shown_with_its_offsets_and_dead_letters() {
    let server = guarded().await;
    let semel = &server.served().semel;
    let mails = Pipeline::builder(semel, "mails").scope(["acme", "eu"]).build().expect("is one");
    let events = (0..30).map(|number| (format!("event-{number}"), Outcome::success("sent")));
    assert_eq!(mails.record(events).await.expect("are recorded").len(), 30);
    let letters = (0..25).map(|number| (format!("bad-{number}"), dead_letter(5, "no such mailbox")));
    assert_eq!(mails.record(letters).await.expect("are recorded").len(), 25);
    let reader = mails.take("orders/0").await.expect("is taken");
    let committed = reader.commit_knowing(Position::new(4_711), Some("event-29"), Some(1_987)).await;
    committed.map(drop).expect("is committed");
    let ledger = Pipeline::new(semel, "ledger").expect("is one");
    ledger.commit_shared("payments", Position::new(80), None).await.map(drop).expect("is committed");
    server.served().census.look_soon();

    let mut browser = Browser::logged_in(&server, "reader").await;
    let html =
        until(&mut browser, "/pipelines", |html| html.contains("4711") && html.contains("ledger")).await;
    for said in [
        "orders/0",
        "1,987",
        "event-29",
        "no such mailbox",
        "after 5 attempts",
        "the newest 20 of 25",
        "payments",
        "shared",
    ] {
        assert!(html.contains(said), "{said} is not in {html}");
    }
    let own = Browser::logged_in(&server, "acme-reader").await.get("/pipelines").await.text().to_owned();
    assert!(own.contains("orders/0") && !own.contains("payments"), "another scope's is not shown");
}
