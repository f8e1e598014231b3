//! Whether a value is what a schema says, for those words of JSON Schema that our document uses.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::document::{Document, members};

/// Deeper values than any of ours.
const DEPTH_MAX: u32 = 64;

/// Nothing, or what is wrong and where.
pub(super) fn check(document: &Document, schema: &Value, value: &Value) -> Result<()> {
    Check { document, depth: 0 }.value(schema, value)
}

#[derive(Clone, Copy)]
struct Check<'a> {
    document: &'a Document,
    depth: u32,
}

impl Check<'_> {
    fn value(self, schema: &Value, value: &Value) -> Result<()> {
        ensure!(self.depth < DEPTH_MAX, "too deep");
        let inner = Self { depth: self.depth + 1, ..self };
        let schema = self.document.resolved(schema);
        if let Some(is_any) = schema.as_bool() {
            ensure!(is_any, "nothing is allowed here, and there is {}", short(value));
            return Ok(());
        }
        inner.choices(schema, value)?;
        is_of_type(schema, value)?;
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
            ensure!(
                allowed.contains(value),
                "{} is none of {}",
                short(value),
                short(&allowed.clone().into())
            );
        }
        if let Some(only) = schema.get("const") {
            ensure!(only == value, "{} is not {only}", short(value));
        }
        inner.object(schema, value)?;
        inner.array(schema, value)?;
        in_bounds(schema, value)
    }

    fn choices(self, schema: &Value, value: &Value) -> Result<()> {
        let of = |word: &str| schema.get(word).and_then(Value::as_array);
        for all in of("allOf").into_iter().flatten() {
            self.value(all, value)?;
        }
        for (word, most) in [("oneOf", 1), ("anyOf", usize::MAX)] {
            let Some(choices) = of(word) else { continue };
            let tried: Vec<_> = choices.iter().map(|choice| self.value(choice, value)).collect();
            let fitting = tried.iter().filter(|tried| tried.is_ok()).count();
            if fitting == 0 {
                let why: Vec<_> = tried
                    .iter()
                    .filter_map(|tried| tried.as_ref().err())
                    .map(|why| format!("{why:#}"))
                    .collect();
                bail!("{} fits no {word}: {}", short(value), why.join(" | "));
            }
            ensure!(fitting <= most, "{} fits {fitting} of {word}", short(value));
        }
        Ok(())
    }

    fn object(self, schema: &Value, value: &Value) -> Result<()> {
        let Some(found) = value.as_object() else { return Ok(()) };
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            ensure!(found.contains_key(name), "`{name}` is missing in {}", short(value));
        }
        let described = schema.get("properties");
        for (name, member) in found {
            let schema = described
                .and_then(|described| described.get(name))
                .or_else(|| schema.get("additionalProperties"));
            let Some(schema) = schema else { continue };
            self.value(schema, member).with_context(|| format!("`{name}`"))?;
        }
        Ok(())
    }

    fn array(self, schema: &Value, value: &Value) -> Result<()> {
        let (Some(items), Some(schema)) = (value.as_array(), schema.get("items")) else { return Ok(()) };
        for (at, item) in items.iter().enumerate() {
            self.value(schema, item).with_context(|| format!("[{at}]"))?;
        }
        Ok(())
    }
}

fn is_of_type(schema: &Value, value: &Value) -> Result<()> {
    let is_it = |kind: &Value| match kind.as_str().unwrap_or_default() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    let fits = match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(is_it),
        Some(kind) => is_it(kind),
    };
    ensure!(fits, "{} is not of type {}", short(value), schema.get("type").unwrap_or(&Value::Null));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "lengths of what fits into memory")]
fn in_bounds(schema: &Value, value: &Value) -> Result<()> {
    let size = match value {
        Value::String(text) => Some(("minLength", "maxLength", text.chars().count() as f64)),
        Value::Array(items) => Some(("minItems", "maxItems", items.len() as f64)),
        Value::Number(number) => number.as_f64().map(|number| ("minimum", "maximum", number)),
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    };
    let Some((least, most, size)) = size else { return Ok(()) };
    let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
    ensure!(bound(least).is_none_or(|least| size >= least), "{} is less than its {least}", short(value));
    ensure!(bound(most).is_none_or(|most| size <= most), "{} is more than its {most}", short(value));
    Ok(())
}

/// The beginning of a value, for people.
pub(super) fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 160 {
        text
    } else {
        format!("{}…", text.chars().take(160).collect::<String>())
    }
}

/// How many members an object schema describes, references and parts included.
pub(super) fn properties<'a>(
    document: &'a Document,
    schema: &'a Value,
) -> Vec<(&'a String, &'a Value, bool)> {
    let schema = document.resolved(schema);
    let required: Vec<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let own = schema.get("properties").into_iter().flat_map(members);
    let own = own.map(|(name, member)| (name, member, required.contains(&name.as_str())));
    let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    own.chain(parts.flat_map(|part| properties(document, part))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> Document {
        let schemas = json!({ "Name": { "type": "string", "maxLength": 3 } });
        let paths = json!({ "/a": { "get": { "responses": { "200": {} } } } });
        Document::new(json!({
            "openapi": "3.1.0", "info": { "title": "t" }, "paths": paths, "components": { "schemas": schemas }
        }))
        .unwrap()
    }

    #[test]
    fn what_a_schema_does_not_allow_is_found_out() {
        let document = document();
        let schema = json!({
            "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": {
                "name": { "$ref": "#/components/schemas/Name" },
                "kind": { "oneOf": [{ "type": "null" }, { "enum": ["a", "b"] }] },
                "list": { "type": "array", "items": { "type": ["integer", "null"], "minimum": 0 } },
            }
        });
        for fine in [json!({ "name": "abc" }), json!({ "name": "a", "kind": null, "list": [1, null] })] {
            check(&document, &schema, &fine).unwrap();
        }
        for wrong in [
            json!({}),
            json!([]),
            json!({ "name": "abcd" }),
            json!({ "name": 1 }),
            json!({ "name": "a", "kind": "c" }),
            json!({ "name": "a", "list": [-1] }),
            json!({ "name": "a", "list": [1.5] }),
            json!({ "name": "a", "more": 1 }),
        ] {
            assert!(check(&document, &schema, &wrong).is_err(), "{wrong}");
        }
    }
}
