//! Every endpoint, asked by everybody, about keys of their own scope and of another.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofs::fuzz::{Document, Operation};
use semel::record::Record;
use serde_json::{Value, json};
use test_http::blocking::Client;
use test_http::{Answer, Request, Role, Server, Token, encoded};

use super::pages::binary;
use super::table::{API, EVERYBODY, Place, Row, Who};

/// What must never be seen from another scope.
const SECRET: &str = "known-to-globex-alone";

/// A server, and everybody who asks it.
pub(super) struct World {
    pub(super) server: Server,
    roles: [(Role, Token); 3],
    stranger: Token,
    /// Workers and operators who may do everything everywhere.
    maker: Token,
    pub(super) judge: Token,
}

/// One record that nobody else knows, so that no cell disturbs another.
pub(super) struct Fresh {
    scope: &'static str,
    name: String,
    pub(super) id: String,
    permit: String,
}

impl World {
    pub(super) fn start() -> Self {
        let roles = Role::ALL.map(|role| (role, Token::new(role, &["acme"])));
        let (maker, judge) = (Token::new(Role::Work, &[]), Token::new(Role::Operate, &[]));
        let mut tokens: Vec<_> = roles.iter().map(|(_, token)| token.clone()).collect();
        tokens.extend([maker.clone(), judge.clone()]);
        let server = Server::start(binary(), "memory:", &tokens).expect("it serves");
        Self { server, roles, stranger: Token::new(Role::Operate, &[]), maker, judge }
    }

    /// The same people before another server.
    pub(super) fn before(self, server: Server) -> Self {
        Self { server, ..self }
    }

    /// The token of somebody, if they have one.
    pub(super) fn token(&self, who: Who) -> Option<&Token> {
        match who {
            Who::Nobody => None,
            Who::Stranger => Some(&self.stranger),
            Who::Of(role) => self.roles.iter().find(|(own, _)| *own == role).map(|(_, token)| token),
        }
    }

    fn maker(&self) -> Client {
        self.server.client().with_token(&self.maker)
    }

    /// A running record, or one in the state that the endpoint is for.
    pub(super) fn fresh(&self, place: Place, endpoint: &str) -> Fresh {
        let scope = if place == Place::Own { "acme" } else { "globex" };
        let name = format!("{SECRET}-{:016x}", rand::random::<u64>());
        let claim = json!({ "scope": [scope], "operation": "charge", "name": name, "owner": "maker", "lease_ms": 600_000 });
        let mut maker = self.maker();
        let run = maker.call("/v1/claim", &claim).expect("is claimed");
        let word = |name: &str| run[name].as_str().expect("is text").to_owned();
        let fresh = Fresh { scope, name, id: word("id"), permit: word("permit") };
        if endpoint.ends_with("/resolve") {
            maker.call("/v1/hold", &json!({ "permit": fresh.permit, "reason": SECRET })).expect("is held");
        } else if ["GET /v1/record", "GET /v1/store"].iter().any(|begin| endpoint.starts_with(begin))
            || endpoint.ends_with("/outcome")
        {
            let outcome = json!({ "permit": fresh.permit, "outcome": { "json": SECRET } });
            maker.call("/v1/complete", &outcome).expect("is done");
        }
        fresh
    }

    /// What is stored, as somebody sees it who may see everything.
    pub(super) fn stored(&self, fresh: &Fresh) -> Value {
        let mut judge = self.server.client().with_token(&self.judge);
        let mut told = judge.get(&format!("/v1/records/{}", fresh.id)).expect("is there");
        // What is said relative to now changes by itself.
        let record = told["record"].as_object_mut().expect("is an object");
        record.retain(|name, _| matches!(name.as_str(), "state" | "version" | "attempt" | "outcome"));
        record.clone().into()
    }
}

/// The request that an endpoint is asked with.
fn ask(endpoint: &str, fresh: &Fresh) -> Request {
    let Fresh { scope, name, id, permit } = fresh;
    let key = json!({ "scope": [scope], "operation": "charge", "name": name });
    let with = |more: Value| {
        let mut all = key.clone();
        let more = more.as_object().expect("is an object").clone();
        all.as_object_mut().expect("is an object").extend(more);
        all
    };
    let settled = |more: Value| {
        let mut all = json!({ "permit": permit });
        all.as_object_mut().expect("is an object").extend(more.as_object().expect("is an object").clone());
        all
    };
    let query = format!("scope={scope}&operation=charge&name={}", encoded(name));
    let (method, path) = endpoint.split_once(' ').expect("a method and a path");
    let path = path.replace("{id}", id);
    let body = match endpoint {
        "POST /v1/claim" => key,
        "POST /v1/record_once" => with(json!({ "outcome": { "json": 1 } })),
        "POST /v1/complete" => settled(json!({ "outcome": { "json": 1 } })),
        "POST /v1/release" | "POST /v1/hold" => settled(json!({ "reason": "why" })),
        "POST /v1/renew" | "POST /v1/resume" => settled(json!({})),
        "POST /v1/step" => settled(json!({ "name": "charged", "json": 1 })),
        "POST /v1/claim/batch" => json!({ "items": [key] }),
        "POST /v1/record_once/batch" => json!({ "items": [with(json!({ "outcome": { "json": 1 } }))] }),
        "POST /v1/complete/batch" => json!({ "items": [settled(json!({ "outcome": { "json": 1 } }))] }),
        "POST /v1/release/batch" => json!({ "items": [settled(json!({ "reason": "why" }))] }),
        "POST /v1/renew/batch" => json!({ "items": [settled(json!({}))] }),
        "POST /v1/records/{id}/release" | "POST /v1/records/{id}/requeue" => json!({ "reason": "why" }),
        "POST /v1/records/{id}/resolve" => json!({ "outcome": { "json": 1 } }),
        "POST /v1/receipts/record" => json!({ "scope": [scope], "pipeline": "billing", "event": name }),
        "POST /v1/offsets/move" => {
            json!({ "scope": [scope], "pipeline": "billing", "stream": name, "to": "7", "epoch": 0 })
        }
        "POST /v1/store/sweep" => json!({ "limit": 1 }),
        "GET /v1/store/load" => return Request::get(&format!("{path}?id={id}")),
        "GET /v1/record" | "GET /v1/records" | "GET /v1/store/scan" => {
            return Request::get(&format!("{path}?{query}"));
        }
        "GET /v1/receipts" => return Request::get(&format!("{path}?pipeline=billing")),
        _ if method == "GET" => return Request::get(&path),
        _ => panic!("{endpoint} is new: say how it is asked, and add its row to the table"),
    };
    Request::post_json(&path, &body)
}

fn wanted(row: &Row, place: Place) -> [u16; 5] {
    if place == Place::Own { row.own } else { row.foreign }
}

/// What one cell of the table got that it must not.
fn fault(world: &World, row: &Row, place: Place, who: Who, wanted: u16) -> Option<String> {
    let fresh = world.fresh(place, row.endpoint);
    let before = world.stored(&fresh);
    let mut asked = ask(row.endpoint, &fresh);
    if let Some(token) = world.token(who) {
        asked = asked.by(token);
    }
    let answer = world.server.client().ask(&asked).expect("is answered");
    let cell = || format!("{} about a key of {place:?} by {who:?}", row.endpoint);
    if answer.status != wanted {
        return Some(format!("{}: {} and not {wanted}: {}", cell(), answer.status, answer.text()));
    }
    if answer.status == 401 && answer.first("www-authenticate").is_none() {
        return Some(format!("{}: no WWW-Authenticate", cell()));
    }
    if place == Place::Foreign && world.stored(&fresh) != before {
        return Some(format!("{}: changed {before} to {}", cell(), world.stored(&fresh)));
    }
    tells(&answer, place, who).then(|| format!("{}: told {}", cell(), answer.text()))
}

/// Whether somebody is told what they must not know: a foreign outcome or name, or an outcome without the role for it.
fn tells(answer: &Answer, place: Place, who: Who) -> bool {
    let text = answer.text();
    let in_outcome = format!("\"json\":\"{SECRET}\"");
    let records = stored_records(answer);
    let names = |record: &&Record| record.key.name().contains(SECRET);
    let shows_outcome =
        |record: &Record| record.outcome().is_some_and(|outcome| outcome.bytes().starts_with(b"\"known"));
    match place {
        Place::Foreign => text.contains(SECRET) || records.iter().any(|record| names(&record)),
        Place::Own => {
            who == Who::Of(Role::Read) && (text.contains(&in_outcome) || records.iter().any(shows_outcome))
        }
    }
}

/// The records of an answer that has them exactly as they are kept.
fn stored_records(answer: &Answer) -> Vec<Record> {
    let Ok(json) = answer.json() else { return Vec::new() };
    let records = json["records"].as_array().into_iter().flatten();
    let texts = records.filter_map(|record| record["record"].as_str().or(record.as_str()).map(str::to_owned));
    texts.filter_map(|text| semel::codec::decode(&STANDARD.decode(text).ok()?).ok()).collect()
}

/// Every cell of the table that is not as it must be.
fn faults(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for row in API {
        for place in [Place::Own, Place::Foreign] {
            let cells = EVERYBODY.into_iter().zip(wanted(row, place));
            found.extend(cells.filter_map(|(who, wanted)| fault(world, row, place, who, wanted)));
        }
    }
    found
}

#[test]
fn every_endpoint_answers_everybody_as_the_table_says() {
    let world = World::start();
    let found = faults(&world);
    assert!(found.is_empty(), "{} cells:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_endpoint_of_the_document_has_a_row_in_the_table() {
    let world = World::start();
    let document =
        Document::new(world.server.client().get("/openapi.json").expect("is told")).expect("is one");
    let documented: Vec<_> = document.operations().expect("has some").iter().map(Operation::name).collect();
    let without: Vec<_> =
        documented.iter().filter(|name| !API.iter().any(|row| row.endpoint == **name)).collect();
    assert!(without.is_empty(), "no row for {without:?}");
    let gone: Vec<_> = API
        .iter()
        .map(|row| row.endpoint)
        .filter(|name| name.contains("/v1/"))
        .filter(|name| !documented.iter().any(|one| one == name))
        .collect();
    assert!(gone.is_empty(), "not in the document: {gone:?}");
}

/// The control: a server where everybody may do everything.
#[test]
fn a_server_that_asks_nobody_for_a_token_fails_the_table() {
    let world = World::start();
    let open = Server::start(binary(), "memory:", &[]).expect("it serves");
    let world = world.before(open);
    let found = faults(&world);
    assert!(found.len() > 50, "{} cells:\n{}", found.len(), found.join("\n"));
}
