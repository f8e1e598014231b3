//! One action on many keys: by selection, by filter, to its end.

use std::sync::Arc;

use semel::record::StateKind;
use semel::{Key, Outcome};
use semel_server::access::{Caller, Known, Quota, Role, TokenDigest, Tokens};
use semel_server::serve::{Server, ServerSettings};
use test_http::until as until_some;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::visit::{Browser, done, encoded, guarded, held, open, running, token};

fn key(scope: &str, name: &str) -> Key {
    Key::scoped([scope], "charge", name).expect("is a key")
}

async fn state(server: &Server, key: &Key) -> StateKind {
    server.served().semel.get(key).await.expect("answers").expect("is there").state.kind()
}

/// The form of the page that asks, as a browser sends it.
async fn release_form(browser: &mut Browser, page: &str) -> Vec<(String, String)> {
    let html = browser.get(page).await.text().to_owned();
    let mut form: Vec<_> = html
        .split("<main")
        .nth(1)
        .expect("has a main part")
        .split("<input type=\"hidden\" name=\"")
        .skip(1)
        .map(|rest| {
            let (name, rest) = rest.split_once("\" value=\"").expect("has a value");
            (name.to_owned(), rest.split('"').next().expect("ends").to_owned())
        })
        .collect();
    assert!(form.iter().any(|(name, _)| name == "shown_at"), "{html}");
    form.push(("why".to_owned(), "none of them landed".to_owned()));
    form
}

async fn send(browser: &mut Browser, form: &[(String, String)]) -> String {
    let form: Vec<_> = form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    browser.post("/actions", &form).await.text().to_owned()
}

fn number(html: &str, mark: &str) -> u64 {
    let rest = html.split(mark).nth(1).unwrap_or_else(|| panic!("no {mark} in {html}"));
    let digits: String =
        rest.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().expect("is a number")
}

#[tokio::test]
async fn all_that_match_are_released_and_nothing_else() {
    let server = open().await;
    let semel = &server.served().semel;
    for number in 0..30 {
        held(semel, &key("acme", &number.to_string()), "the provider timed out").await;
    }
    held(semel, &key("acme", "other"), "a bug").await;
    held(semel, &key("globex", "other"), "the provider timed out").await;
    let mut browser = Browser::at(&server);
    let list = browser.get("/keys?scope=acme&state=held&reason=timed+out").await.text().to_owned();
    assert_eq!(list.matches("data-test=\"key-row\"").count(), 30);
    let page = "/actions?action=release&match=all&scope=acme&state=held&reason=timed%20out";
    assert!(list.contains(&page.replace('&', "&amp;")), "{list}");
    let form = release_form(&mut browser, page).await;
    assert!(browser.get(page).await.text().contains(">30 keys<"));
    assert_eq!(state(&server, &key("acme", "3")).await, StateKind::Held, "a question alone does nothing");
    // Held after the page was shown: no operator decided on it.
    held(semel, &key("acme", "late"), "the provider timed out").await;
    let html = send(&mut browser, &form).await;
    assert_eq!(number(&html, "<dt>Released</dt>"), 30);
    assert_eq!(number(&html, "Left alone: changed since the page was shown"), 1);
    for number in 0..30 {
        assert_eq!(state(&server, &key("acme", &number.to_string())).await, StateKind::Released);
    }
    for other in [key("acme", "other"), key("globex", "other"), key("acme", "late")] {
        assert_eq!(state(&server, &other).await, StateKind::Held);
    }
    let again = send(&mut browser, &form).await;
    assert!(!again.contains("<dt>Released</dt>"), "a form that is sent twice acts once: {again}");
}

#[tokio::test]
async fn selected_keys_are_resolved_with_a_response_and_the_others_stay_held() {
    let server = open().await;
    let semel = &server.served().semel;
    let http = |name: &str| Key::new("http", name).expect("is a key");
    for name in ["a", "b", "c"] {
        let permit = running(semel, semel::Claim::new(&http(name)).label("POST /charges")).await;
        permit.hold("the upstream hung up").await.map(drop).expect("is held");
    }
    held(semel, &key("acme", "d"), "lapsed").await;
    let ids = [http("a").id(), http("b").id(), key("acme", "d").id()];
    let query = ids.map(|id| format!("&id={id}")).concat();
    let mut browser = Browser::at(&server);
    let page = format!("/actions?action=resolve{query}");
    let (csrf, at) = (browser.hidden(&page, "csrf").await, browser.hidden(&page, "shown_at").await);
    let ids = ids.map(|id| id.to_string());
    let send = |headers: &'static str| {
        let mut form = vec![("csrf", csrf.as_str()), ("shown_at", &at), ("action", "resolve")];
        form.extend(ids.iter().map(|id| ("id", id.as_str())));
        form.extend([
            ("with", "response"),
            ("status", "201"),
            ("headers", headers),
            ("content_type", "application/json"),
        ]);
        form.push(("body", "{\"id\":7}"));
        form
    };
    let refused = browser.post("/actions", &send("Set-Cookie: a=<b>")).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("set-cookie") && refused.text().contains("Set-Cookie: a=&lt;b&gt;"));
    assert_eq!(state(&server, &http("a")).await, StateKind::Held, "nothing was written");
    let html = browser.post("/actions", &send("Location: /charges/7")).await.text().to_owned();
    assert_eq!(number(&html, "<dt>Resolved</dt>"), 2);
    assert_eq!(number(&html, "Refused: nothing was changed"), 1);
    assert_eq!(state(&server, &http("a")).await, StateKind::Done);
    for stays in [http("c"), key("acme", "d")] {
        assert_eq!(state(&server, &stays).await, StateKind::Held);
    }
}

#[tokio::test]
async fn an_operator_acts_within_their_scope_and_a_reader_not_at_all() {
    let server = guarded().await;
    let semel = &server.served().semel;
    let own = Key::scoped(["acme", "eu"], "charge", "own").expect("is a key");
    held(semel, &own, "lapsed").await;
    held(semel, &key("globex", "foreign"), "lapsed").await;
    let mut operator = Browser::logged_in(&server, "acme-operator").await;
    let form = release_form(&mut operator, "/actions?action=release&match=all").await;
    let html = send(&mut operator, &form).await;
    assert_eq!(number(&html, "data-test=\"matched\""), 1);
    let page = format!("/actions?action=release&id={}", key("globex", "foreign").id());
    assert!(operator.get(&page).await.text().contains("There is no key to act on."));
    assert_eq!(state(&server, &key("globex", "foreign")).await, StateKind::Held);
    let mut reader = Browser::logged_in(&server, "reader").await;
    assert_eq!(reader.get("/actions?action=release&match=all").await.status, 403);
    assert!(
        !reader.get("/keys?state=held").await.text().contains("name=\"id\""),
        "there is nothing to select for"
    );
}

#[tokio::test]
async fn many_are_settled_and_audited_although_the_tab_is_closed() {
    const KEYS: usize = 300;
    let folder = tempfile::tempdir().expect("a folder for a test");
    let path = folder.path().join("audit.jsonl");
    let mut settings = ServerSettings::in_memory();
    let caller = Arc::new(Caller::new("jane", Role::Operate, Vec::new(), Quota::none()));
    let known = Known { digest: TokenDigest::of(&token("operator")), caller };
    settings.tokens = Tokens::new(vec![known]).expect("is one");
    settings.audit = Some(path.clone());
    let server = Server::start(settings).await.expect("starts");
    let semel = &server.served().semel;
    for number in 0..KEYS {
        held(semel, &key("acme", &number.to_string()), "lapsed").await;
    }
    let mut browser = Browser::logged_in(&server, "operator").await;
    let form = release_form(&mut browser, "/actions?action=release&match=all").await;
    let body: Vec<_> = form.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let (body, cookie) = (body.join("&"), browser.cookie.clone().expect("is logged in"));
    let mut tab = TcpStream::connect(server.listening()).await.expect("connects");
    let head = format!(
        "POST /actions HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        server.listening(),
        body.len()
    );
    tab.write_all(head.as_bytes()).await.expect("is sent");
    until_some("the first to be audited", async || {
        std::fs::read_to_string(&path).is_ok_and(|text| text.contains("\"done\"")).then_some(())
    })
    .await;
    drop(tab);
    let lines = until_some("all to be audited", async || {
        let text = std::fs::read_to_string(&path).expect("is there");
        let done = text.lines().filter(|line| line.contains("\"done\"")).count();
        (done == KEYS).then_some(text)
    })
    .await;
    assert!(lines.lines().all(|line| line.contains("\"jane\"") && line.contains("none of them landed")));
    for number in 0..KEYS {
        assert_eq!(state(&server, &key("acme", &number.to_string())).await, StateKind::Released);
    }
}

#[tokio::test]
async fn a_list_is_sorted_by_age_and_by_change_and_its_link_can_be_shared() {
    let server = open().await;
    let semel = &server.served().semel;
    for name in ["first", "second", "third"] {
        done(semel, &key("acme", name), Outcome::success("1")).await;
    }
    let mut browser = Browser::at(&server);
    let order = |html: &str| {
        let at = |name: &str| html.find(&format!("<bdi>{name}</bdi></a>")).expect("is listed");
        (at("first"), at("second"), at("third"))
    };
    let html = browser.get("/keys?sort=age&name_prefix=&state=done").await.text().to_owned();
    let (first, second, third) = order(&html);
    assert!(first < second && second < third);
    assert!(html.contains("<option value=\"age\" selected>"), "the form shows what the address says");
    let html = browser.get("/keys?sort=changed").await.text().to_owned();
    let (first, second, third) = order(&html);
    assert!(third < second && second < first);
    let html = browser.get("/keys?name_prefix=th").await.text().to_owned();
    assert!(html.contains("third") && !html.contains("<bdi>first</bdi>"));
}
