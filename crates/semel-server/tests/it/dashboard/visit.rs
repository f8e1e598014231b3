//! A server with tokens and records, and a browser that keeps its cookie.

use std::net::SocketAddr;
use std::sync::Arc;

use semel::{Claim, Decision, Key, Lapse, Outcome, Permit, Semel};
use semel_server::access::{Caller, Known, Quota, Role, TokenDigest, Tokens};
use semel_server::serve::{Server, ServerSettings};
pub(crate) use test_http::encoded;
use test_http::until as until_some;

use super::markup::assert_clean;
use crate::client::{Answer, Client};

/// The tokens of every server here: everywhere, and within `acme/eu`.
pub(crate) const TOKENS: [(&str, Role, &[&str]); 5] = [
    ("reader", Role::Read, &[]),
    ("operator", Role::Operate, &[]),
    ("worker", Role::Work, &[]),
    ("acme-reader", Role::Read, &["acme", "eu"]),
    ("acme-operator", Role::Operate, &["acme", "eu"]),
];

/// The token of this name.
pub(crate) fn token(name: &str) -> String {
    format!("semel_{name}")
}

/// A server in memory with tokens.
pub(crate) async fn guarded() -> Server {
    let known = TOKENS.map(|(name, role, scope)| {
        let scope = scope.iter().map(|part| (*part).into()).collect();
        let caller = Arc::new(Caller::new(name, role, scope, Quota::none()));
        Known { digest: TokenDigest::of(&token(name)), caller }
    });
    let mut settings = ServerSettings::in_memory();
    settings.tokens = Tokens::new(known.into()).expect("differ");
    Server::start(settings).await.expect("starts")
}

/// A server in memory without tokens.
pub(crate) async fn open() -> Server {
    Server::start(ServerSettings::in_memory()).await.expect("starts")
}

/// A browser.
pub(crate) struct Browser {
    address: SocketAddr,
    pub(crate) cookie: Option<String>,
}

impl Browser {
    pub(crate) fn at(server: &Server) -> Self {
        Self { address: server.listening(), cookie: None }
    }

    /// One that has logged in with this token.
    pub(crate) async fn logged_in(server: &Server, name: &str) -> Self {
        let mut browser = Self::at(server);
        let answer = browser.post("/login", &[("token", &token(name))]).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
        browser
    }

    /// A page, which is clean whatever it says.
    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        let answer = self.ask(&format!("GET {path} HTTP/1.1\r\n"), "").await;
        if answer.header("content-type") == Some("text/html; charset=utf-8") {
            assert_clean(path, answer.text());
            let policy = answer.header("content-security-policy").expect("every page has a policy");
            assert!(
                policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"),
                "{policy}"
            );
        }
        answer
    }

    /// A form as a program sends it: browsers add more.
    pub(crate) async fn post(&mut self, path: &str, form: &[(&str, &str)]) -> Answer {
        self.post_with(path, form, &[]).await
    }

    pub(crate) async fn post_with(
        &mut self,
        path: &str,
        form: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let body = form
            .iter()
            .map(|(name, value)| format!("{name}={}", encoded(value)))
            .collect::<Vec<_>>()
            .join("&");
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        self.ask(&head, &body).await
    }

    async fn ask(&mut self, head: &str, body: &str) -> Answer {
        let cookie = self.cookie.as_ref().map(|cookie| format!("Cookie: {cookie}\r\n")).unwrap_or_default();
        let request = format!("{head}Host: {}\r\n{cookie}\r\n{body}", self.address);
        let answer = Client::connect(self.address).await.ask(&request).await;
        if let Some(set) = answer.header("set-cookie") {
            self.cookie = set.split(';').next().map(str::to_owned);
        }
        answer
    }

    /// What the form of this page holds under this name.
    pub(crate) async fn hidden(&mut self, page: &str, name: &str) -> String {
        let answer = self.get(page).await;
        let html = answer.text();
        let mark = format!("name=\"{name}\" value=\"");
        let main = html.split("<main").nth(1).expect("has a main part");
        let rest = main.split(&mark).nth(1).unwrap_or_else(|| panic!("{page} has no {name}: {html}"));
        rest.split('"').next().expect("ends").to_owned()
    }
}

pub(crate) fn path(key: &Key) -> String {
    format!("/keys/{}", key.id())
}

/// The word for the state that a key's page shows.
pub(crate) fn state_on(html: &str) -> &str {
    let rest = html.split("data-test=\"key-state\">").nth(1).expect("shows a state");
    rest.split("</svg>").nth(1).and_then(|rest| rest.split('<').next()).expect("has a word")
}

/// The number in the tile of this word.
pub(crate) fn count_on(html: &str, word: &str) -> u64 {
    let rest = html.split(&format!("data-test=\"{word}-count\">")).nth(1).expect("shows the count");
    rest.split('<').next().expect("ends").replace(',', "").parse().expect("is a number")
}

/// Looks at the page until it is so.
pub(crate) async fn until(browser: &mut Browser, page: &str, is_so: impl Fn(&str) -> bool) -> String {
    until_some(page, async || {
        let answer = browser.get(page).await;
        is_so(answer.text()).then(|| answer.text().to_owned())
    })
    .await
}

pub(crate) async fn done(semel: &Semel, key: &Key, outcome: Outcome) {
    let recorded = semel.record_once(Claim::new(key), outcome).await.expect("answers");
    assert!(matches!(recorded, semel::RecordedOnce::Recorded(_)), "{recorded:?}");
}

pub(crate) async fn running(semel: &Semel, claim: Claim) -> Permit {
    let decision = semel.claim(claim).await.expect("answers");
    let Decision::Run(permit) = decision else { panic!("{decision:?}") };
    permit
}

pub(crate) async fn held(semel: &Semel, key: &Key, reason: &str) {
    running(semel, Claim::new(key).lapse(Lapse::Hold)).await.hold(reason).await.map(drop).expect("is held");
}
