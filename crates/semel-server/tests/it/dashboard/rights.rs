//! What each role sees and may do.

use semel::{Key, Outcome};

use super::visit::{Browser, done, guarded, held, path};

#[tokio::test]
async fn every_page_is_shown_to_the_roles_that_may_see_it_and_to_no_other() {
    let server = guarded().await;
    let semel = &server.served().semel;
    let (key, stuck) =
        (Key::new("charge", "order-1").expect("is one"), Key::new("charge", "order-2").expect("is one"));
    done(semel, &key, Outcome::success("paid in full")).await;
    held(semel, &stuck, "lapsed").await;
    let (one, outcome) = (path(&key), format!("{}/outcome", path(&key)));
    let (release, resolve) = (format!("{}/release", path(&stuck)), format!("{}/resolve", path(&stuck)));
    let matrix = [
        ("/", [200, 200, 403]),
        ("/keys", [200, 200, 403]),
        ("/pipelines", [200, 200, 403]),
        (one.as_str(), [200, 200, 200]),
        (outcome.as_str(), [403, 200, 200]),
        (release.as_str(), [403, 200, 403]),
        (resolve.as_str(), [403, 200, 403]),
    ];
    for (place, name) in ["reader", "operator", "worker"].into_iter().enumerate() {
        let mut browser = Browser::logged_in(&server, name).await;
        for (page, statuses) in &matrix {
            let answer = browser.get(page).await;
            assert_eq!(answer.status, statuses[place], "{name} {page}");
            if answer.status == 403 {
                assert!(answer.text().contains("This needs the role"), "{}", answer.text());
            }
        }
        let sees_content = browser.get(&one).await.text().contains("paid in full");
        assert_eq!(sees_content, name != "reader", "{name}");
        let csrf = csrf(&mut browser, &one).await;
        if name != "operator" {
            for form in [&release, &resolve] {
                let fields =
                    [("csrf", csrf.as_str()), ("version", "1"), ("reason", "because"), ("how", "release")];
                assert_eq!(browser.post(form, &fields).await.status, 403, "{name} {form}");
            }
        }
    }
}

async fn csrf(browser: &mut Browser, page: &str) -> String {
    let answer = browser.get(page).await;
    let rest = answer.text().split("name=\"csrf\" value=\"").nth(1).expect("has a form").to_owned();
    rest.split('"').next().expect("ends").to_owned()
}

#[tokio::test]
async fn an_outcome_is_handed_out_as_a_file_that_nobody_takes_for_a_page() {
    let server = guarded().await;
    let key = Key::new("charge", "order-1").expect("is one");
    let bytes = b"<script>alert(1)</script>\0".to_vec();
    done(&server.served().semel, &key, Outcome::success(bytes.clone())).await;
    let mut browser = Browser::logged_in(&server, "operator").await;
    let answer = browser.get(&format!("{}/outcome", path(&key))).await;
    assert_eq!((answer.status, &answer.body), (200, &bytes));
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    assert!(
        answer
            .header("content-disposition")
            .is_some_and(|how| how.starts_with("attachment; filename=\"outcome-"))
    );
    assert_eq!(answer.header("content-security-policy"), Some("default-src 'none'; sandbox"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
}
