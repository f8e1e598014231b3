//! Servers and tokens for tests.

use std::net::SocketAddr;

use semel_server::access::{TokenDigest, Tokens};
use semel_server::serve::{Server, ServerSettings};

use crate::client::{Answer, Client};

/// A server on a free port, in memory.
pub(crate) async fn start(settings: ServerSettings) -> Server {
    Server::start(settings).await.expect("starts")
}

/// One token of each role, whose text is its name; everything after is written into each.
pub(crate) fn tokens(rest: &str) -> Tokens {
    let block = |role: &str| {
        let digest = TokenDigest::of(&format!("semel_{role}"));
        format!("[[token]]\nname = \"{role}\"\ndigest = \"{digest}\"\nrole = \"{role}\"\n{rest}\n")
    };
    let text: String = ["work", "read", "operate"].map(block).concat();
    Tokens::parse(&text, "tokens.toml").expect("are tokens")
}

pub(crate) async fn get(address: SocketAddr, path: &str, head: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n");
    Client::connect(address).await.ask(&request).await
}

pub(crate) fn post(path: &str, head: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{head}\r\n{body}"
    )
}

pub(crate) async fn claim(address: SocketAddr, head: &str, name: &str) -> Answer {
    let body = format!("{{\"operation\":\"charge\",\"name\":\"{name}\"}}");
    Client::connect(address).await.ask(&post("/v1/claim", head, &body)).await
}
