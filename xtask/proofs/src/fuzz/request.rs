//! Requests made from an operation: in order, nearly so, and not at all.

use serde_json::Value;

use super::document::{Document, Operation, Parameter};
use super::value::{Known, Maker, Manner};
use crate::dice::Dice;
use test_http::{Request, Token, encoded};

/// More than a body may have.
const HUGE_BYTES: usize = (8 << 20) + 1;
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Whoever asks.
pub(super) struct Callers<'a> {
    /// Those that the server knows, the most useful first.
    pub(super) known: &'a [Token],
    pub(super) unknown: &'a Token,
}

/// One request for an operation.
pub(super) fn request(
    document: &Document,
    operation: &Operation,
    known: &Known,
    callers: &Callers<'_>,
    dice: &mut Dice,
) -> Request {
    let manner = if dice.happens(60) { Manner::Careful } else { Manner::Careless };
    let mut maker = Maker { document, known, dice, manner };
    let method = if maker.dice.happens(3) { maker.dice.word(&METHODS) } else { operation.method.clone() };
    let target = target(operation, &mut maker);
    let body = operation.body.as_ref().map(|schema| body(schema, &mut maker));
    let mut ask = Request::new(&method, &target);
    if let Some(body) = body {
        ask.body = Some(body).filter(|body| !body.is_empty() || method == "POST");
        let kind = if dice.happens(96) { "application/json".to_owned() } else { media_type(dice) };
        ask = ask.header("Content-Type", &kind);
    }
    if ask.body.is_none() && method == "POST" {
        ask.body = Some(Vec::new());
    }
    sign(ask, operation, callers, dice)
}

fn media_type(dice: &mut Dice) -> String {
    dice.word(&[
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/json; charset=utf-8",
        "json",
        "",
    ])
}

/// With a token: mostly with one whose role is enough.
fn sign(ask: Request, operation: &Operation, callers: &Callers<'_>, dice: &mut Dice) -> Request {
    match dice.below(100) {
        0..4 => ask,
        4..8 => ask.by(callers.unknown),
        8..10 => ask
            .header("Authorization", &dice.word(&["", "Bearer", "Bearer ", "Basic YTpi", "bearer x y", "é"])),
        10..20 => match dice.pick(callers.known) {
            Some(token) => ask.by(token),
            None => ask,
        },
        _ => {
            // The first is a worker's, the second an operator's.
            let is_work = operation.method == "POST" && !operation.path.contains("{id}");
            match callers.known.get(usize::from(!is_work)) {
                Some(token) => ask.by(token),
                None => ask,
            }
        }
    }
}

fn body(schema: &Value, maker: &mut Maker<'_>) -> Vec<u8> {
    match maker.dice.below(1_000) {
        0..10 => maker.dice.bytes(64),
        10..20 => Vec::new(),
        20..22 => vec![b' '; HUGE_BYTES],
        22..30 => [b"[".repeat(20_000), b"]".repeat(20_000)].concat(),
        30..50 => maker.garbage(0).to_string().into_bytes(),
        50..65 => {
            // Cut off somewhere in the middle.
            let whole = maker.value("", schema, 0).to_string().into_bytes();
            let length = maker.dice.below(whole.len());
            whole.get(..length).unwrap_or_default().to_vec()
        }
        65..70 => {
            // A member twice.
            let whole = maker.value("", schema, 0).to_string();
            whole.replacen('{', "{\"name\":\"twice\",\"name\":\"twice\",", 1).into_bytes()
        }
        _ => maker.value("", schema, 0).to_string().into_bytes(),
    }
}

fn target(operation: &Operation, maker: &mut Maker<'_>) -> String {
    let mut path = operation.path.clone();
    let mut query = Vec::new();
    for parameter in &operation.parameters {
        if parameter.is_in_path {
            let value = texts(&maker.value(&parameter.name, &parameter.schema, 0)).concat();
            let value = if value.is_empty() { "0".to_owned() } else { value };
            path = path.replace(&format!("{{{}}}", parameter.name), &encoded(&clipped(&value)));
        } else if is_wanted(parameter, maker) {
            let value = maker.value(&parameter.name, &parameter.schema, 0);
            query.extend(
                texts(&value).iter().map(|text| format!("{}={}", parameter.name, encoded(&clipped(text)))),
            );
        }
    }
    if maker.manner == Manner::Careless && maker.dice.happens(10) {
        query.push(maker.dice.word(&[
            "unknown=1",
            "=",
            "&&",
            "scope",
            "%zz=%",
            "limit=-1",
            "limit=99999999999999999999",
        ]));
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

fn is_wanted(parameter: &Parameter, maker: &mut Maker<'_>) -> bool {
    maker.dice.happens(if parameter.is_required { 97 } else { 35 })
}

/// A value as it stands in a query: a list as one of each.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(texts).take(50).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![value.to_string()],
    }
}

/// A head has a bound, and what is past it is refused before anybody knows which operation it was for.
fn clipped(text: &str) -> String {
    text.chars().take(1_100).collect()
}
