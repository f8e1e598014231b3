//! Forms of others change nothing.

use semel::Key;
use semel::record::State;

use super::visit::{Browser, guarded, held, open, path};

async fn is_held(server: &semel_server::serve::Server, key: &Key) -> bool {
    let found = server.served().semel.get(key).await.expect("answers").expect("is there");
    matches!(found.state, State::Held(_))
}

#[tokio::test]
async fn a_form_that_no_page_of_this_visit_sent_changes_nothing() {
    let server = guarded().await;
    let key = Key::scoped(["acme", "eu"], "charge", "order-1").expect("is a key");
    held(&server.served().semel, &key, "lapsed").await;
    let mut browser = Browser::logged_in(&server, "operator").await;
    let page = format!("{}/release", path(&key));
    let (csrf, version) = (browser.hidden(&page, "csrf").await, browser.hidden(&page, "version").await);
    let others = Browser::logged_in(&server, "acme-operator").await.hidden(&page, "csrf").await;
    assert_ne!(csrf, others);
    let form = |csrf: &str| {
        [("csrf", csrf.to_owned()), ("version", version.clone()), ("reason", "because".to_owned())]
    };

    for wrong in ["", "wrong", &csrf[1..], &others, &format!("{csrf}=")] {
        let form = form(wrong);
        let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
        assert_eq!(browser.post(&page, &form).await.status, 403, "{wrong}");
    }
    assert_eq!(
        browser.post(&page, &[("version", &version), ("reason", "because")]).await.status,
        403,
        "without one"
    );
    let form = form(&csrf);
    let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
    for foreign in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1:1"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        assert_eq!(browser.post_with(&page, &form, &[foreign]).await.status, 403, "{foreign:?}");
    }
    assert_eq!(Browser::at(&server).post(&page, &form).await.status, 303, "to the login");
    assert!(is_held(&server, &key).await);

    let own = format!("http://{}", server.listening());
    let headers = [("Origin", own.as_str()), ("Sec-Fetch-Site", "same-origin")];
    let answer = browser.post_with(&page, &form, &headers).await;
    let to = format!("{}?said=released", path(&key));
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some(to.as_str())),
        "the browser's own form takes"
    );
    assert!(!is_held(&server, &key).await);
}

#[tokio::test]
async fn a_first_request_without_a_visit_sends_no_form() {
    let server = open().await;
    let key = Key::new("charge", "order-1").expect("is a key");
    held(&server.served().semel, &key, "lapsed").await;
    let page = format!("{}/release", path(&key));
    let (csrf, version) = {
        let mut somebody = Browser::at(&server);
        // The visit begins with the first page, and the form belongs to the second.
        somebody.get("/").await;
        (somebody.hidden(&page, "csrf").await, somebody.hidden(&page, "version").await)
    };
    let form = [("csrf", csrf.as_str()), ("version", version.as_str()), ("reason", "because")];
    assert_eq!(Browser::at(&server).post(&page, &form).await.status, 403);
    assert!(is_held(&server, &key).await);
}
