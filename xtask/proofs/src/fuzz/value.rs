//! Values made from a schema: mostly ones that it allows, and as many as needed of those that it just does not.

use serde_json::{Map, Value, json};

use super::document::Document;
use super::schema::properties;
use crate::dice::Dice;

/// Deep enough for a batch of claims with outcomes.
const DEPTH_MAX: u32 = 6;
/// How many of each are remembered.
const KNOWN_MAX: usize = 200;

/// How far a value may stray.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// As a careful client writes it.
    Careful,
    /// At and just past the bounds, with members too many or too few, or of the wrong type.
    Careless,
}

/// What earlier answers told: real permits, ids and versions.
#[derive(Default)]
pub(super) struct Known {
    permits: Vec<String>,
    ids: Vec<String>,
    versions: Vec<Value>,
}

impl Known {
    /// Remembers what an answer tells.
    pub(super) fn learn(&mut self, answer: &Value) {
        match answer {
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.as_str(), member) {
                        ("permit", Value::String(permit)) => keep(&mut self.permits, permit.clone()),
                        ("id", Value::String(id)) => keep(&mut self.ids, id.clone()),
                        ("version", version) => keep(&mut self.versions, version.clone()),
                        (_, inner) => self.learn(inner),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn keep<T>(known: &mut Vec<T>, one: T) {
    if known.len() >= KNOWN_MAX {
        known.remove(0);
    }
    known.push(one);
}

/// Makes values.
pub(super) struct Maker<'a> {
    pub(super) document: &'a Document,
    pub(super) known: &'a Known,
    pub(super) dice: &'a mut Dice,
    pub(super) manner: Manner,
}

impl Maker<'_> {
    /// A value for a member of this name.
    pub(super) fn value(&mut self, name: &str, schema: &Value, depth: u32) -> Value {
        let schema = self.document.resolved(schema).clone();
        if self.manner == Manner::Careless && self.dice.happens(6) {
            return self.garbage(depth);
        }
        if let Some(words) = self.by_name(name) {
            return words;
        }
        if let Some(choices) =
            ["oneOf", "anyOf"].iter().find_map(|word| schema.get(word)).and_then(Value::as_array)
        {
            let choice = self.dice.pick(choices).cloned().unwrap_or_default();
            let made = self.value("", &choice, depth + 1);
            return self.merged(made, &schema, depth);
        }
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
            return self.dice.pick(allowed).cloned().unwrap_or_default();
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        match self.kind(&schema).as_str() {
            "null" => Value::Null,
            "boolean" => self.dice.happens(50).into(),
            "integer" | "number" => self.number(&schema),
            "string" => self.text().into(),
            "array" => self.array(name, &schema, depth),
            "object" => self.object(&schema, depth),
            // Any JSON at all.
            _ => self.garbage(depth),
        }
    }

    fn kind(&mut self, schema: &Value) -> String {
        match schema.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(Value::Array(kinds)) => {
                let kinds: Vec<_> = kinds.iter().filter_map(Value::as_str).collect();
                self.dice.word(&kinds)
            }
            _ if schema.get("properties").is_some() || schema.get("allOf").is_some() => "object".to_owned(),
            _ => String::new(),
        }
    }

    /// A choice together with the members that all choices have.
    fn merged(&mut self, made: Value, schema: &Value, depth: u32) -> Value {
        let Value::Object(mut made) = made else { return made };
        if let Value::Object(own) = self.object(schema, depth) {
            made.extend(own);
        }
        made.into()
    }

    fn object(&mut self, schema: &Value, depth: u32) -> Value {
        let document = self.document;
        let mut made = Map::new();
        if depth > DEPTH_MAX {
            return made.into();
        }
        for (name, member, is_required) in properties(document, schema) {
            let is_wanted = match (is_required, self.manner) {
                (true, Manner::Careful) => true,
                (true, Manner::Careless) => self.dice.happens(95),
                (false, Manner::Careful) => self.dice.happens(25),
                (false, Manner::Careless) => self.dice.happens(45),
            };
            if is_wanted {
                made.insert(name.clone(), self.value(name, member, depth + 1));
            }
        }
        if self.manner == Manner::Careless && self.dice.happens(8) {
            made.insert(self.text(), Value::Null);
        }
        made.into()
    }

    fn array(&mut self, name: &str, schema: &Value, depth: u32) -> Value {
        let items = schema.get("items").cloned().unwrap_or(Value::Bool(true));
        let count = match self.manner {
            Manner::Careful => 1 + self.dice.below(3),
            // Past the bound of a batch, now and then.
            Manner::Careless if self.dice.happens(3) => 1_001,
            Manner::Careless => self.dice.below(10),
        };
        let item = if name == "scope" { "scope_part" } else { "" };
        if count > 100 {
            return vec![self.value(item, &items, depth + 1); count].into();
        }
        (0..count).map(|_| self.value(item, &items, depth + 1)).collect::<Vec<_>>().into()
    }

    fn number(&mut self, schema: &Value) -> Value {
        if self.manner == Manner::Careful {
            let least = schema.get("minimum").and_then(Value::as_u64).unwrap_or(0);
            return (least + self.dice.below(50) as u64).into();
        }
        let edges = [
            json!(0),
            json!(1),
            json!(-1),
            json!(u32::MAX),
            json!(u64::from(u32::MAX) + 1),
            json!(i64::MAX),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(1.5),
            json!(1e300),
            json!(60_000),
            json!(60_001),
        ];
        self.dice.pick(&edges).cloned().unwrap_or_default()
    }

    fn text(&mut self) -> String {
        const PLAIN: [&str; 6] = ["charge", "order-1", "order-2", "payout", "x", "send invoice"];
        const EDGES: [&str; 12] = [
            "",
            " ",
            "\u{0}",
            "a\nb",
            "\u{7f}",
            "\u{202e}rtl",
            "é\u{301}",
            "🦀",
            "%00",
            "../..",
            "null",
            "<script>",
        ];
        if self.manner == Manner::Careful {
            return self.dice.word(&PLAIN);
        }
        match self.dice.below(8) {
            0 => "a".repeat(511 + self.dice.below(3)),
            1 => "é".repeat(512 + self.dice.below(2)),
            2 => "k".repeat(70_000),
            3 | 4 => self.dice.word(&PLAIN),
            _ => self.dice.word(&EDGES),
        }
    }

    /// Members whose values must mean something to get anywhere.
    fn by_name(&mut self, name: &str) -> Option<Value> {
        if self.manner == Manner::Careless && self.dice.happens(25) && !name.starts_with("wait") {
            return None;
        }
        let word: String = match name {
            "permit" if self.dice.happens(90) => self.dice.pick(&self.known.permits)?.clone(),
            "permit" => format!("p1.{}", self.dice.hex(60)),
            "permit_id" => self.dice.hex(32),
            "id" | "after" if self.dice.happens(85) => self.dice.pick(&self.known.ids)?.clone(),
            "fingerprint" | "id" | "after" => self.dice.hex(64),
            "version" if !self.known.versions.is_empty() => {
                return self.dice.pick(&self.known.versions).cloned();
            }
            // Nothing that makes a request wait for long: there are thousands of them.
            "wait" => self.dice.word(&[
                "0s",
                "5ms",
                "20ms",
                "61s",
                "1",
                "-1s",
                "",
                "1e9s",
                "999999999999999999999s",
            ]),
            "wait_ms" => {
                return self
                    .dice
                    .pick(&[json!(0), json!(5), json!(20), json!(60_001), json!(-1), json!("5")])
                    .cloned();
            }
            "lease_ms" if self.manner == Manner::Careful => {
                return self.dice.pick(&[json!(20), json!(1_000), json!(60_000)]).cloned();
            }
            "retention_ms" if self.manner == Manner::Careful => return Some(json!(60_000)),
            "older_than" => self.dice.word(&["0s", "1ms", "10m", "1d", "x", "-1s"]),
            "name" => format!("order-{}", self.dice.below(40)),
            "operation" => self.dice.word(&["charge", "payout"]),
            "scope_part" => self.dice.word(&["acme", "globex"]),
            "base64" => self.dice.word(&["", "AA==", "aGVsbG8=", "AA", "?", "====", "aGVsbG8"]),
            "state" => self.dice.word(&["running", "held", "done", "released", "lapsed", "RUNNING", ""]),
            _ => return None,
        };
        Some(word.into())
    }

    /// Any JSON.
    pub(super) fn garbage(&mut self, depth: u32) -> Value {
        match self.dice.below(if depth > DEPTH_MAX { 5 } else { 7 }) {
            0 => Value::Null,
            1 => self.dice.happens(50).into(),
            2 => json!(self.dice.below(1_000)),
            3 => json!(-0.5),
            4 => self.text().into(),
            5 => (0..self.dice.below(4)).map(|_| self.garbage(depth + 2)).collect::<Vec<_>>().into(),
            _ => {
                let members = (0..self.dice.below(4)).map(|_| (self.text(), self.garbage(depth + 2)));
                members.collect::<Map<_, _>>().into()
            }
        }
    }
}
