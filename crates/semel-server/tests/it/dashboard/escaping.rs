//! Strangers' strings are text, wherever they stand.

use semel::{Claim, Key, Outcome, OutcomeKind};
use semel_stream::{DeadLetter, Event, Pipeline, Position};
use serde_json::json;

use super::visit::{Browser, done, encoded, held, open, path, running, until};

const HOSTILE: [&str; 12] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "'><svg onload=alert(1)>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "javascript:alert(1)",
    "{{constructor.constructor('alert(1)')()}}",
    "\" onmouseover=\"alert(1)",
    "--><script>alert(1)</script><!--",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\u{202e}txt.exe\u{2066}",
    "a/b\\c?d=e&f#g%00%3Cscript%3E",
];

#[tokio::test]
async fn whatever_strangers_write_is_text_on_every_page() {
    let server = open().await;
    let semel = &server.served().semel;
    let mut browser = Browser::at(&server);
    browser.get("/").await;
    let mut pages = vec!["/".to_owned(), "/keys".to_owned(), "/pipelines".to_owned()];
    let mut permits = Vec::new();
    for text in HOSTILE {
        let key = |operation: &str| Key::scoped([text, "x"], operation, text).expect("is a key");
        let outcome = Outcome::new(OutcomeKind::from_word(text), text.as_bytes().to_vec())
            .reference(text, text)
            .details(&json!({ text: text }));
        done(semel, &key(text), outcome).await;
        held(semel, &key("held"), text).await;
        let permit =
            running(semel, Claim::new(&key("running")).owner(text).first_event(text).label(text)).await;
        permit.step(text, || async { Ok::<_, std::io::Error>(text.to_owned()) }).await.expect("is stored");
        permits.push(permit);
        let pipeline = Pipeline::builder(semel, text).scope([text]).build().expect("is one");
        let event = Event::new(text, text, text.as_bytes().to_vec()).at(7).header(text, text);
        let letter =
            DeadLetter { event: event.into(), key: Some(text.into()), attempts: 3, error: text.to_owned() };
        let recorded = pipeline.record([(text, letter.outcome(1_000))]).await.expect("is recorded");
        assert_eq!(recorded.len(), 1);
        let letter = pipeline.receipt_key(text).expect("is a key");
        pages.extend([path(&letter), format!("{}/requeue", path(&letter))]);
        pipeline.commit_shared(text, Position::new(1), Some(text)).await.map(drop).expect("is committed");

        pages.extend([text, "held", "running"].map(|operation| path(&key(operation))));
        pages.extend(["release", "resolve"].map(|action| format!("{}/{action}", path(&key("held")))));
        pages.push(format!("{}/release", path(&key("running"))));
        let typed = encoded(text);
        pages.push(format!("/keys?scope={typed}&operation={typed}&name={typed}&older_than={typed}&after={typed}&state={typed}"));
        pages.push(format!("/keys?scope={typed}"));
        for list in [
            "/keys?sort=age&",
            "/attention?",
            "/actions?action=release&match=all&",
            "/actions?action=resolve&match=all&",
        ] {
            pages.push(format!("{list}scope={typed}"));
            pages.push(format!("{list}label={typed}&reason={typed}&name_prefix={typed}"));
            pages.push(format!("{list}reason={typed}"));
        }
        pages.push(format!("/actions?action={typed}&match={typed}&id={typed}&sort={typed}"));
        pages.push(format!("/keys?operation=held&name={typed}"));
        pages.push(format!("{}?said={typed}", path(&key("held"))));
        pages.push(format!("/keys/{typed}"));
        pages.push(format!("/{typed}"));
    }
    server.served().census.look_soon();
    until(&mut browser, "/pipelines", |html| html.matches("dead letters").count() >= HOSTILE.len()).await;
    for page in pages {
        // `get` looks at the page for elements, attributes and addresses that are none of ours.
        let answer = browser.get(&page).await;
        assert!(matches!(answer.status, 200 | 303 | 400 | 404), "{page}: {}", answer.status);
        assert!(!answer.text().contains("<script>") && !answer.text().contains("<img"), "{page}");
    }
}

#[tokio::test]
async fn a_message_is_never_made_of_words_from_the_address() {
    let server = open().await;
    let key = Key::new("charge", "order-1").expect("is a key");
    held(&server.served().semel, &key, "lapsed").await;
    let mut browser = Browser::at(&server);
    let forged = browser.get(&format!("{}?said=Send%20your%20token%20to%20us", path(&key))).await;
    assert!(!forged.text().contains("data-test=\"flash\"") && !forged.text().contains("Send your token"));
    let own = browser.get(&format!("{}?said=released", path(&key))).await;
    assert!(own.text().contains("data-test=\"flash\""));
}

#[tokio::test]
async fn a_large_outcome_is_shown_in_part_and_bytes_that_are_no_text_in_hex() {
    let server = open().await;
    let semel = &server.served().semel;
    let (large, binary) = (Key::new("a", "large").expect("is one"), Key::new("a", "binary").expect("is one"));
    done(semel, &large, Outcome::success("x".repeat(1 << 20).into_bytes())).await;
    done(semel, &binary, Outcome::success(vec![0, 1, 2, 0xff])).await;
    let mut browser = Browser::at(&server);
    let page = browser.get(&path(&large)).await;
    assert!(page.body.len() < 100_000, "{} bytes", page.body.len());
    assert!(page.text().contains("The first 64.0 KiB of 1.0 MiB."));
    assert!(browser.get(&path(&binary)).await.text().contains("00000000  00 01 02 ff"));
}
