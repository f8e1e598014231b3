//! Live events: who hears what, and how it ends.

use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::server::{Server, claim, memory, tokens};

/// What a listener hears.
struct Heard {
    body: Incoming,
    text: String,
}

impl Heard {
    async fn listen(server: &Server) -> Self {
        let response = server.send(Request::get("/v1/events").body(Full::default()).unwrap()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next event of this name; `None` at the end.
    async fn next(&mut self, name: &str) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(data) = event.strip_prefix(&format!("event: {name}\ndata: ")) {
                    return Some(serde_json::from_str(data).expect("is JSON"));
                }
            }
            let frame =
                timeout(Duration::from_secs(10), self.body.frame()).await.expect("something is heard");
            let bytes = frame?.expect("is whole").into_data().expect("is data");
            self.text += std::str::from_utf8(&bytes).expect("is text");
        }
    }
}

#[tokio::test]
async fn a_listener_hears_each_decision_until_the_server_stops() {
    let server = Server::start().await;
    let mut heard = Heard::listen(&server).await;
    let run = server.decide("/v1/claim", &claim("a\u{2028}\"b")).await;
    server.decide("/v1/complete", &json!({"permit": run["permit"]})).await;
    let decision = heard.next("decision").await.unwrap();
    assert_eq!(
        decision,
        json!({"decision": "run", "id": run["id"], "scope": ["acme"], "operation": "charge", "name": "a\u{2028}\"b", "attempt": 1})
    );
    assert_eq!(heard.next("decision").await.unwrap()["decision"], "done");
    assert!(heard.next("rates").await.unwrap()["run"].is_u64());
    server.served.waits.drain();
    assert_eq!(heard.next("decision").await, None, "it ends");
}

#[tokio::test]
async fn a_listener_hears_of_its_own_scope_only() {
    let server = Server::on(memory().await, tokens(&["acme", "other"])).await;
    let mut heard = Heard::listen(&server.with_token("semel_read_other")).await;
    server.with_token("semel_work_acme").decide("/v1/claim", &claim("foreign")).await;
    let own = json!({"scope": ["other"], "operation": "charge", "name": "own"});
    server.with_token("semel_work_other").decide("/v1/claim", &own).await;
    assert_eq!(heard.next("decision").await.unwrap()["name"], "own", "the first that it hears");
    let refused = server.with_token("semel_work_acme").get("/v1/events").await;
    assert_eq!(refused.problem().0, 403);
}

#[tokio::test]
async fn a_browser_listens_with_its_cookie() {
    let server = Server::on(memory().await, tokens(&["acme"])).await;
    let listen =
        |cookie: &str| Request::get("/v1/events").header("cookie", cookie).body(Full::default()).unwrap();
    assert_eq!(server.send(listen("a=b; semel_session=semel_read_acme")).await.status(), 200);
    assert_eq!(server.ask(listen("semel_session=wrong")).await.problem().0, 401);
    let claim = Request::get("/v1/records").header("cookie", "semel_session=semel_read_acme");
    let refused = server.ask(claim.body(Full::default()).unwrap()).await;
    assert_eq!(refused.problem().0, 401, "a cookie counts for nothing else");
}

#[tokio::test]
async fn only_so_many_listen_at_once() {
    let server = Server::start().await;
    let mut listeners = Vec::new();
    for _ in 0..256 {
        listeners.push(Heard::listen(&server).await);
    }
    let refused = server.get("/v1/events").await;
    assert_eq!(refused.problem(), (503, "unavailable".to_owned()));
    drop(listeners);
    for _ in 0..1_000 {
        server.decide("/v1/claim", &claim("a")).await;
        let response = server.send(Request::get("/v1/events").body(Full::default()).unwrap()).await;
        if response.status() == 200 {
            return;
        }
    }
    panic!("whoever left is still counted");
}
