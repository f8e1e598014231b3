//! Actions, from the list to what became of them.

use std::time::Duration;

use semel::record::State;
use semel::{Claim, Decision, Key, Lapse};

use super::visit::{Browser, count_on, guarded, held, path, running, state_on, until};

#[tokio::test]
async fn a_held_key_is_found_resolved_and_counted_anew() {
    let server = guarded().await;
    let semel = &server.served().semel;
    let key = Key::scoped(["acme", "eu"], "charge", "order-7").expect("is one");
    held(semel, &key, "the provider timed out").await;
    server.served().census.look_soon();
    let mut browser = Browser::logged_in(&server, "operator").await;
    until(&mut browser, "/", |html| count_on(html, "held") == 1).await;
    let list = browser.get("/keys?state=held").await;
    assert!(
        list.text().contains(&format!("href=\"{}\"", path(&key)))
            && list.text().contains("the provider timed out")
    );
    let page = format!("{}/resolve", path(&key));
    assert!(browser.get(&path(&key)).await.text().contains(&format!("href=\"{page}\"")));
    assert!(browser.get(&page).await.text().contains("That cannot be undone."));
    let (csrf, version) = (browser.hidden(&page, "csrf").await, browser.hidden(&page, "version").await);
    let outcome = "{\"id\": \"ch_7\"}\r\n";
    let form = [
        ("csrf", csrf.as_str()),
        ("version", &version),
        ("how", "done"),
        ("kind", "success"),
        ("outcome", outcome),
        ("reason", "looked, and it landed"),
    ];
    let answer = browser.post(&page, &form).await;
    let to = answer.header("location").expect("leads back").to_owned();
    assert_eq!((answer.status, to.as_str()), (303, format!("{}?said=resolved", path(&key)).as_str()));
    let after = browser.get(&to).await;
    assert!(after.text().contains("Every retry gets this outcome from now on."));
    assert_eq!(state_on(after.text()), "done");
    until(&mut browser, "/", |html| count_on(html, "held") == 0 && count_on(html, "done") == 1).await;
    let decision = semel.claim(Claim::new(&key)).await.expect("answers");
    let Decision::Replay(replay) = decision else { panic!("{decision:?}") };
    assert_eq!(&**replay.outcome().bytes(), b"{\"id\": \"ch_7\"}\n");
}

#[tokio::test]
async fn nothing_else_is_settled_than_what_was_shown() {
    let server = guarded().await;
    let semel = &server.served().semel;
    let key = Key::new("charge", "order-8").expect("is one");
    held(semel, &key, "lapsed").await;
    let mut browser = Browser::logged_in(&server, "operator").await;
    let page = format!("{}/release", path(&key));
    let (csrf, version) = (browser.hidden(&page, "csrf").await, browser.hidden(&page, "version").await);
    // Meanwhile, somebody else released it, it ran again, and is held once more.
    let released = semel::Resolution::Release { reason: "by another".into() };
    semel.resolve(&key, released).await.map(drop).expect("is released");
    held(semel, &key, "the second time").await;
    let form = [("csrf", csrf.as_str()), ("version", &version), ("reason", "because")];
    let answer = browser.post(&page, &form).await;
    assert_eq!(answer.header("location"), Some(format!("{}?said=changed", path(&key)).as_str()));
    let found = semel.get(&key).await.expect("answers").expect("is there");
    assert!(matches!(&found.state, State::Held(held) if held.reason.as_str() == "the second time"));
    assert!(
        browser.get(&format!("{}?said=changed", path(&key))).await.text().contains("Nothing was changed")
    );
}

#[tokio::test]
async fn a_run_is_released_with_a_warning_and_its_worker_is_told() {
    let server = guarded().await;
    let semel = &server.served().semel;
    let key = Key::new("charge", "order-9").expect("is one");
    let permit = running(semel, Claim::new(&key).owner("worker-1")).await;
    let mut browser = Browser::logged_in(&server, "operator").await;
    let page = format!("{}/release", path(&key));
    let html = browser.get(&page).await.text().to_owned();
    assert!(html.contains("Releasing stops no process.") && html.contains("Its lease is good"), "{html}");
    let (csrf, version) = (browser.hidden(&page, "csrf").await, browser.hidden(&page, "version").await);
    let form = [("csrf", csrf.as_str()), ("version", &version), ("reason", "the machine is gone")];
    // Its heartbeat goes on while somebody reads the page: it is still the run that was shown.
    permit.renew().await.expect("is renewed");
    let answer = browser.post(&page, &form).await;
    assert_eq!(answer.header("location"), Some(format!("{}?said=released", path(&key)).as_str()));
    let after = browser.get(&path(&key)).await;
    assert_eq!(state_on(after.text()), "released");
    assert!(after.text().contains("the machine is gone"));
    let error = permit.complete(semel::Outcome::success("late")).await.expect_err("it was taken away");
    assert_eq!(error.kind(), semel::ErrorKind::Lost);
}

#[tokio::test]
async fn an_action_without_a_reason_or_with_a_broken_form_changes_nothing() {
    let server = guarded().await;
    let semel = &server.served().semel;
    let key = Key::new("charge", "order-10").expect("is one");
    held(semel, &key, "lapsed").await;
    let mut browser = Browser::logged_in(&server, "operator").await;
    let page = format!("{}/resolve", path(&key));
    let (csrf, version) = (browser.hidden(&page, "csrf").await, browser.hidden(&page, "version").await);
    let (csrf, version) = (csrf.as_str(), version.as_str());
    for form in [
        &[("csrf", csrf), ("version", version), ("how", "release"), ("reason", " ")][..],
        &[("csrf", csrf), ("version", version), ("how", "maybe"), ("reason", "because")],
        &[("csrf", csrf), ("version", "x"), ("how", "release"), ("reason", "because")],
        &[("csrf", csrf), ("how", "release"), ("reason", "because")],
    ] {
        let answer = browser.post(&page, form).await;
        assert_eq!(answer.status, 400, "{form:?}");
        assert!(answer.text().contains("Nothing was changed"), "{}", answer.text());
    }
    assert_eq!(semel.get(&key).await.expect("answers").expect("is there").state.kind().as_str(), "held");
}

#[tokio::test]
async fn a_run_that_lapsed_under_hold_is_shown_as_held_with_its_label_and_its_attempts() {
    let server = guarded().await;
    let semel = &server.served().semel;
    let key = Key::new("charge", "order-11").expect("is one");
    let first = running(semel, Claim::new(&key).owner("worker-1")).await;
    first.release("the provider was down").await.map(drop).expect("is released");
    let claim = Claim::new(&key).owner("worker-2").label("POST /charges").lapse(Lapse::Hold);
    running(semel, claim.lease(Duration::from_millis(1))).await;
    // Returns when the lease has lapsed; no claim comes in between.
    semel.get_settled(key.id(), Duration::from_secs(20)).await.expect("answers").expect("is there");
    let mut browser = Browser::logged_in(&server, "operator").await;
    let html = browser.get(&path(&key)).await.text().to_owned();
    assert_eq!(state_on(&html), "held");
    for part in ["POST /charges", "worker-1", "the provider was down", "worker-2", "lapsed", "/resolve"] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let list = browser.get("/keys?state=held").await.text().to_owned();
    assert!(list.contains(&path(&key)), "{list}");
    let page = format!("{}/resolve", path(&key));
    let (csrf, version) = (browser.hidden(&page, "csrf").await, browser.hidden(&page, "version").await);
    // Meanwhile a claim writes down that it is held: it is still what was shown.
    assert!(matches!(semel.claim(Claim::new(&key)).await, Ok(Decision::Held(_))));
    let form = [("csrf", csrf.as_str()), ("version", &version), ("how", "release"), ("reason", "looked")];
    let answer = browser.post(&page, &form).await;
    assert_eq!(answer.header("location"), Some(format!("{}?said=resolved", path(&key)).as_str()));
    let found = semel.get(&key).await.expect("answers").expect("is there");
    assert!(matches!(&found.state, State::Released(released) if &*released.reason == "looked"));
}

#[tokio::test]
async fn h58_a_held_http_key_is_resolved_with_a_response_and_what_cannot_be_replayed_is_refused_first() {
    let server = super::visit::open().await;
    let semel = &server.served().semel;
    let key = Key::new("http", "pay-1").expect("is a key");
    let permit = running(semel, semel::Claim::new(&key).label("POST /charges")).await;
    permit.hold("the upstream hung up").await.expect("is held");
    let mut browser = Browser::at(&server);
    let page = format!("{}/resolve", path(&key));
    assert!(browser.get("/attention").await.status == 200);
    let (csrf, version) = (browser.hidden(&page, "csrf").await, browser.hidden(&page, "version").await);
    let form = |headers: &'static str| {
        [
            ("csrf", csrf.clone()),
            ("version", version.clone()),
            ("how", "done".to_owned()),
            ("status", "201".to_owned()),
            ("headers", headers.to_owned()),
            ("content_type", "application/json".to_owned()),
            ("body", "{\"id\":7}".to_owned()),
        ]
    };
    let bad = form("Set-Cookie: a=b");
    let refused = browser.post(&page, &bad.each_ref().map(|(name, value)| (*name, value.as_str()))).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("set-cookie") && refused.text().contains("Set-Cookie: a=b"),
        "{}",
        refused.text()
    );
    assert!(
        semel.get(&key).await.expect("is read").expect("is there").outcome().is_none(),
        "nothing was written"
    );
    let good = form("Location: /charges/7");
    let done = browser.post(&page, &good.each_ref().map(|(name, value)| (*name, value.as_str()))).await;
    assert_eq!(done.status, 303, "{}", done.text());
    let html = browser.get(&path(&key)).await.text().to_owned();
    for part in ["HTTP 201 Created", "/charges/7", "POST /charges", "exactly this response"] {
        assert!(html.contains(part), "{part}: {html}");
    }
}
