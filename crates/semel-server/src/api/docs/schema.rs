//! What a body may hold, in words.

use maud::{Markup, html};
use serde_json::Value;

/// The schema that this one refers to, or itself.
pub(super) fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let referred = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    referred.and_then(|path| document.pointer(path)).unwrap_or(schema)
}

/// A sentence of the document, with what it has between backticks as code.
pub(super) fn prose(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

/// The members of an object, a line each; the alternatives of a choice, one after the other.
pub(super) fn members(document: &Value, schema: &Value) -> Markup {
    let schema = resolved(document, schema);
    let alternatives = list(schema, "oneOf");
    if !alternatives.is_empty() {
        return html! { @for alternative in alternatives { (members(document, alternative)) } };
    }
    let parts: Vec<&Value> = match list(schema, "allOf") {
        [] => vec![schema],
        parts => parts.iter().map(|part| resolved(document, part)).collect(),
    };
    let described = schema.get("description").or_else(|| parts.first()?.get("description"));
    html! {
        @if let Some(text) = described.and_then(Value::as_str) { p.what { (prose(text)) } }
        @if parts.iter().any(|part| part.get("properties").is_some()) {
            table {
                thead { tr { th { "member" } th { "kind" } th { "meaning" } } }
                tbody {
                    @for part in &parts { @for (name, member) in properties(part) {
                        tr {
                            td { code { (name) } @if is_required(part, name) { span.must title="must be there" { " *" } } }
                            td { (kind(document, member)) }
                            td { (prose(&meaning(document, member))) }
                        }
                    } }
                }
            }
        }
    }
}

/// In a few words, what kind of value it is.
pub(super) fn kind(document: &Value, schema: &Value) -> String {
    if let Some(word) = list(schema, "enum").first().and_then(Value::as_str) {
        let words: Vec<_> = list(schema, "enum").iter().filter_map(Value::as_str).collect();
        return if words.len() > 1 { words.join(" | ") } else { format!("\"{word}\"") };
    }
    if schema.get("$ref").is_some() {
        let resolved = resolved(document, schema);
        let is_named = resolved.get("properties").is_some() || resolved.get("$ref").is_some();
        return if is_named { name_of(schema).to_owned() } else { kind(document, resolved) };
    }
    for choice in ["oneOf", "anyOf"] {
        let kinds: Vec<_> = list(schema, choice).iter().map(|one| kind(document, one)).collect();
        if !kinds.is_empty() {
            return kinds.join(" | ");
        }
    }
    let types = match schema.get("type") {
        Some(Value::String(one)) => one.clone(),
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        _ => "any JSON".to_owned(),
    };
    match schema.get("items") {
        Some(items) => format!("{types} of {}", kind(document, items)),
        None => types,
    }
}

fn meaning(document: &Value, member: &Value) -> String {
    let own = member.get("description").and_then(Value::as_str);
    own.or_else(|| resolved(document, member).get("description")?.as_str()).unwrap_or_default().to_owned()
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn is_required(schema: &Value, name: &str) -> bool {
    list(schema, "required").iter().any(|required| required == name)
}

fn name_of(schema: &Value) -> &str {
    schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next()).unwrap_or("object")
}

fn list<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    schema.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
