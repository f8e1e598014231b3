//! Nobody sees, counts or changes what is outside their scope.

use semel::{Claim, Key, Outcome};

use super::visit::{Browser, count_on, done, guarded, held, path, running, until};

#[tokio::test]
async fn a_scoped_reader_sees_its_own_in_lists_counts_and_by_id() {
    let server = guarded().await;
    let semel = &server.served().semel;
    for (tenant, name) in [("eu", "ours-1"), ("eu", "ours-2"), ("us", "theirs-1"), ("eux", "theirs-2")] {
        done(semel, &Key::scoped(["acme", tenant], "charge", name).expect("is one"), Outcome::success("1"))
            .await;
    }
    let own_held = Key::scoped(["acme", "eu", "billing"], "charge", "ours-3").expect("is one");
    let foreign_held = Key::scoped(["globex"], "charge", "theirs-3").expect("is one");
    held(semel, &own_held, "lapsed").await;
    held(semel, &foreign_held, "lapsed").await;
    let permit = running(semel, Claim::new(&Key::new("charge", "theirs-4").expect("is one"))).await;
    server.served().census.look_soon();

    let mut everybody = Browser::logged_in(&server, "reader").await;
    let all = until(&mut everybody, "/", |html| count_on(html, "held") == 2).await;
    assert_eq!((count_on(&all, "done"), count_on(&all, "running")), (4, 1));
    assert!(all.contains("theirs-3") && all.contains("theirs-4") && all.contains("ours-3"));
    assert!(all.contains("class=\"charts\""), "sees the rates of the server");

    let mut own = Browser::logged_in(&server, "acme-reader").await;
    let few = own.get("/").await.text().to_owned();
    assert_eq!((count_on(&few, "done"), count_on(&few, "held"), count_on(&few, "running")), (2, 1, 0));
    assert!(few.contains("ours-3") && !few.contains("theirs"), "{few}");
    assert!(!few.contains("class=\"charts\""), "rates are everybody's");

    for (page, ours) in [
        ("/keys", 3),
        ("/keys?scope=acme", 3),
        ("/keys?scope=acme%2Feu", 3),
        ("/keys?scope=acme%2Feu%2Fbilling", 1),
        ("/keys?operation=charge", 3),
        ("/keys?state=done", 2),
        ("/keys?name=theirs-1", 0),
        ("/keys?operation=charge&name=theirs-4", 0),
    ] {
        let list = own.get(page).await;
        assert_eq!(list.status, 200, "{page}");
        assert_eq!(list.text().matches("data-test=\"key-row\"").count(), ours, "{page}");
        assert!(!list.text().contains(">theirs"), "{page}");
    }
    assert!(own.get("/keys?scope=globex").await.text().contains("your token reaches acme/eu only"));

    assert_eq!(own.get(&path(&own_held)).await.status, 200);
    let (foreign, nothing) =
        (own.get(&path(&foreign_held)).await, own.get(&format!("/keys/{}", "ab".repeat(32))).await);
    assert_eq!((foreign.status, nothing.status), (404, 404));
    assert_eq!(foreign.text(), nothing.text(), "what is another's is not there");
    let short = foreign_held.id().to_string();
    assert_eq!(own.get(&format!("/keys?name={}", &short[..8])).await.header("location"), None);
    assert_eq!(everybody.get(&format!("/keys?name={}", &short[..8])).await.status, 303);
    drop(permit);
}

#[tokio::test]
async fn a_scoped_operator_changes_nothing_of_others() {
    let server = guarded().await;
    let semel = &server.served().semel;
    let (own, foreign) = (
        Key::scoped(["acme", "eu"], "charge", "a").expect("is one"),
        Key::scoped(["acme", "us"], "charge", "a").expect("is one"),
    );
    held(semel, &own, "lapsed").await;
    held(semel, &foreign, "lapsed").await;
    let mut browser = Browser::logged_in(&server, "acme-operator").await;
    let csrf = browser.hidden(&format!("{}/resolve", path(&own)), "csrf").await;
    let version = semel.get(&foreign).await.expect("answers").expect("is there").version.get().to_string();
    for action in ["release", "resolve"] {
        let page = format!("{}/{action}", path(&foreign));
        assert_eq!(browser.get(&page).await.status, 404);
        let form =
            [("csrf", csrf.as_str()), ("version", &version), ("reason", "because"), ("how", "release")];
        assert_eq!(browser.post(&page, &form).await.status, 404);
    }
    let found = semel.get(&foreign).await.expect("answers").expect("is there");
    assert_eq!(found.state.kind().as_str(), "held");
    let version = browser.hidden(&format!("{}/resolve", path(&own)), "version").await;
    let form = [("csrf", csrf.as_str()), ("version", &version), ("reason", "because"), ("how", "release")];
    assert_eq!(browser.post(&format!("{}/resolve", path(&own)), &form).await.status, 303, "its own it does");
    assert_eq!(semel.get(&own).await.expect("answers").expect("is there").state.kind().as_str(), "released");
}
