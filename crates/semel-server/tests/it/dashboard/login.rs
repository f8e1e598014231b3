//! The way in and out.

use super::visit::{Browser, guarded, open, token};

const PAGES: [&str; 4] = [
    "/",
    "/keys?state=held",
    "/pipelines",
    "/keys/0000000000000000000000000000000000000000000000000000000000000000",
];

#[tokio::test]
async fn without_a_session_every_page_leads_to_the_login_and_back() {
    let server = guarded().await;
    let mut browser = Browser::at(&server);
    for page in PAGES {
        let answer = browser.get(page).await;
        let to = answer.header("location").expect("leads somewhere").to_owned();
        assert_eq!((answer.status, to.starts_with("/login"), answer.body.len()), (303, true, 0), "{page}");
        assert_eq!(browser.get(&to).await.status, 200);
    }
    assert_eq!(
        browser.get("/keys?state=held").await.header("location"),
        Some("/login?next=%2Fkeys%3Fstate%3Dheld")
    );
    let form = [("token", token("reader")), ("next", "/keys?state=held".to_owned())];
    let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
    let answer = browser.post("/login", &form).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/keys?state=held")));
    assert_eq!(browser.get("/keys?state=held").await.status, 200);
}

#[tokio::test]
async fn a_session_is_a_cookie_that_scripts_and_other_sites_never_get() {
    let server = guarded().await;
    let mut browser = Browser::at(&server);
    let answer = browser.post("/login", &[("token", &token("operator"))]).await;
    let cookie = answer.header("set-cookie").expect("sets one");
    for part in ["semel_session=", "; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie} lacks {part}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains("Domain"), "{cookie}");
    let page = browser.get("/").await;
    assert!(page.text().contains("operator"));
    assert!(!page.text().contains(&token("operator")), "the token is in no page");
    assert_eq!(page.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn a_wrong_token_gets_no_session() {
    let server = guarded().await;
    for wrong in ["", "semel_", "semel_readerx", "sha256:0000", "<script>"] {
        let mut browser = Browser::at(&server);
        let answer = browser.post("/login", &[("token", wrong)]).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (401, None), "{wrong}");
        assert!(answer.text().contains("knows no such token"));
        browser.cookie = Some(format!("semel_session={wrong}"));
        assert_eq!(browser.get("/").await.status, 303);
    }
}

#[tokio::test]
async fn nobody_is_sent_to_another_site_after_the_login() {
    let server = guarded().await;
    for next in ["//evil.example", "https://evil.example/", "/\\evil.example", "/a\r\nSet-Cookie: a=b"] {
        let mut browser = Browser::at(&server);
        let answer = browser.post("/login", &[("token", &token("reader")), ("next", next)]).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{next}");
        let page = browser.get(&format!("/login?next={}", super::visit::encoded(next))).await;
        assert!(!page.text().contains("name=\"next\""), "{next}");
    }
}

#[tokio::test]
async fn another_site_cannot_log_anybody_in() {
    let server = guarded().await;
    for foreign in [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site"), ("Origin", "null")]
    {
        let mut browser = Browser::at(&server);
        let answer = browser.post_with("/login", &[("token", &token("reader"))], &[foreign]).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{foreign:?}");
    }
}

#[tokio::test]
async fn logging_out_ends_the_session_of_this_browser() {
    let server = guarded().await;
    let mut browser = Browser::logged_in(&server, "reader").await;
    let page = browser.get("/").await;
    let csrf = page
        .text()
        .split("name=\"csrf\" value=\"")
        .nth(1)
        .expect("has a form")
        .split('"')
        .next()
        .expect("ends")
        .to_owned();
    assert_eq!(browser.post("/logout", &[("csrf", "wrong")]).await.status, 403);
    assert_eq!(browser.get("/").await.status, 200, "nothing was ended");
    let answer = browser.post("/logout", &[("csrf", &csrf)]).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/login")));
    assert!(answer.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=0")));
    assert_eq!(browser.get("/").await.status, 303);
}

#[tokio::test]
async fn without_tokens_nobody_logs_in_and_everybody_has_a_visit_of_their_own() {
    let server = open().await;
    let (mut one, mut other) = (Browser::at(&server), Browser::at(&server));
    assert_eq!((one.get("/login").await.status, one.get("/").await.status), (303, 200));
    assert_eq!(other.get("/").await.status, 200);
    assert!(one.cookie.is_some() && one.cookie != other.cookie);
    assert_eq!(one.get("/").await.header("set-cookie"), None, "a visit goes on");
}
