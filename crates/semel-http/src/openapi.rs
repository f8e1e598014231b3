//! What clients see, for the readers of an API's description: OpenAPI 3.1.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::problem::Code;
use crate::profile::{KeyPresence, Profile, UnquotedKeys};

/// What a profile means, as components of an OpenAPI 3.1 description: the header's parameter, the refusals as
/// `application/problem+json`, and the headers of kept responses.
///
/// Merge `components` into your own. `x-semel-operation` is what a covered operation refers to: its `parameters`, the
/// `responses` that it may have beside its own, and the `headers` to add to its own. For a route with rules of its own,
/// put them into the profile first.
///
/// ```
/// use semel_http::{Profile, openapi_fragment};
///
/// let fragment = openapi_fragment(&Profile::ietf());
/// assert_eq!(fragment["components"]["parameters"]["IdempotencyKey"]["in"], "header");
/// let operation = &fragment["x-semel-operation"];
/// assert_eq!(operation["responses"]["409"]["$ref"], "#/components/responses/Semel409");
/// ```
pub fn openapi_fragment(profile: &Profile) -> Value {
    json!({
        "openapi": "3.1.0",
        "components": {
            "parameters": { "IdempotencyKey": parameter(profile) },
            "headers": headers(profile),
            "responses": responses(profile),
            "schemas": { "SemelProblem": schema(profile) },
        },
        "x-semel-operation": operation(profile),
    })
}

/// The header that carries the key.
fn parameter(profile: &Profile) -> Value {
    let quoted = "A structured field String (RFC 8941): \"8e03978e-40d5-43dd-bc93-6894a57f9324\".";
    let form = match profile.key.unquoted {
        UnquotedKeys::Accepted => format!("{quoted} Without the quotes it is the same key."),
        UnquotedKeys::Refused => format!("{quoted} The quotes are part of it."),
    };
    // The quotes count where they are sent, and each quote or backslash in the key takes two characters.
    let sent_chars_max = profile.key.chars_max.saturating_mul(2).saturating_add(2);
    json!({
        "name": profile.names.key.as_str(),
        "in": "header",
        "required": profile.rules.key == KeyPresence::Required,
        "description": format!(
            "Makes retries safe: a request with the same key runs once, and retries get its first response. {form} \
             At most {} characters. Use a new key for every new request.",
            profile.key.chars_max
        ),
        "schema": { "type": "string", "minLength": 1, "maxLength": sent_chars_max },
    })
}

/// What responses carry.
fn headers(profile: &Profile) -> Value {
    let mut headers = Map::new();
    let text = |description: &str, example: &str| json!({ "description": description, "schema": { "type": "string" }, "example": example });
    let flag = |description: &str, word: &str| json!({ "description": description, "schema": { "type": "string", "const": word } });
    headers.insert(
        "SemelReplayed".into(),
        flag("This is the stored response of the first request with this key.", "true"),
    );
    if profile.names.expires.is_some() {
        let description = "Until when a retry with this key is safe.";
        headers.insert("SemelExpires".into(), text(description, "Sun, 06 Nov 1994 08:49:37 GMT"));
    }
    if profile.rules.on_outage == semel::OnOutage::Open {
        let description = "The request ran without protection: a retry may run it again.";
        headers.insert("SemelProtected".into(), flag(description, "false"));
    }
    let seconds = json!({
        "description": "After how many seconds it is worth asking again.",
        "schema": { "type": "integer", "minimum": 1 },
    });
    headers.insert("SemelRetryAfter".into(), seconds);
    Value::Object(headers)
}

/// One response a status, with the codes that it may have.
fn responses(profile: &Profile) -> Value {
    let responses = by_status(profile).into_iter().map(|(status, codes)| {
        let titles: Vec<_> =
            codes.iter().map(|code| format!("{} (`{}`)", code.title(), code.word())).collect();
        let words: Vec<_> = codes.iter().map(|code| code.word()).collect();
        let content = json!({ "application/problem+json": { "schema": { "allOf": [
            { "$ref": "#/components/schemas/SemelProblem" },
            { "properties": { "status": { "const": status.as_u16() }, "code": { "enum": words } } },
        ] } } });
        let mut response = Map::new();
        response.insert("description".into(), format!("{}.", titles.join("; ")).into());
        response.insert("content".into(), content);
        if codes.iter().any(|code| is_worth_a_retry(*code)) {
            let retry_after = json!({ "Retry-After": { "$ref": "#/components/headers/SemelRetryAfter" } });
            response.insert("headers".into(), retry_after);
        }
        (component(status), Value::Object(response))
    });
    Value::Object(responses.collect())
}

/// The problem itself (RFC 9457).
fn schema(profile: &Profile) -> Value {
    let words: Vec<_> = Code::ALL.iter().map(|code| code.word()).collect();
    let types: Vec<_> = words.iter().map(|word| format!("{}{word}", profile.problem_base)).collect();
    json!({
        "type": "object",
        "description": "Why the request was refused before it ran, or why its outcome cannot be told.",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": { "type": "string", "format": "uri-reference", "enum": types },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string", "description": "What to do now." },
            "code": { "type": "string", "enum": words },
            "original_status": {
                "type": "integer",
                "description": "The status that the first request was answered with, if its answer was not kept.",
            },
        },
    })
}

/// What a covered operation refers to.
fn operation(profile: &Profile) -> Value {
    let responses: Map<String, Value> = by_status(profile)
        .into_iter()
        .map(|(status, _)| {
            let reference = json!({ "$ref": format!("#/components/responses/{}", component(status)) });
            (status.as_str().to_owned(), reference)
        })
        .collect();
    let reference = |name: &str| json!({ "$ref": format!("#/components/headers/{name}") });
    let mut headers = Map::new();
    headers.insert(profile.names.replayed.to_string(), reference("SemelReplayed"));
    if let Some(name) = &profile.names.expires {
        headers.insert(name.to_string(), reference("SemelExpires"));
    }
    if profile.rules.on_outage == semel::OnOutage::Open {
        headers.insert(profile.names.protected.to_string(), reference("SemelProtected"));
    }
    json!({
        "parameters": [{ "$ref": "#/components/parameters/IdempotencyKey" }],
        "responses": responses,
        "headers": headers,
    })
}

/// The codes that can happen under a profile, by the statuses that it gives them, lowest first.
fn by_status(profile: &Profile) -> Vec<(StatusCode, Vec<Code>)> {
    let mut statuses: Vec<(StatusCode, Vec<Code>)> = Vec::new();
    for code in Code::ALL.into_iter().filter(|code| can_happen(*code, profile)) {
        let status = profile.statuses.of(code);
        match statuses.iter_mut().find(|(known, _)| *known == status) {
            Some((_, codes)) => codes.push(code),
            None => statuses.push((status, vec![code])),
        }
    }
    statuses.sort_unstable_by_key(|(status, _)| *status);
    statuses
}

/// Whether the rules leave room for a refusal. A handler may hold any key, and quotas and proxies are no part of a
/// profile, so theirs always may.
fn can_happen(code: Code, profile: &Profile) -> bool {
    let rules = &profile.rules;
    let is_never_missing = code == Code::KeyMissing && rules.key == KeyPresence::Optional;
    let is_run_all_the_same = code == Code::StoreUnavailable && rules.on_outage == semel::OnOutage::Open;
    !is_never_missing && !is_run_all_the_same
}

/// Whether a refusal says when it is worth asking again.
fn is_worth_a_retry(code: Code) -> bool {
    matches!(
        code,
        Code::InFlight
            | Code::OutcomeUnknown
            | Code::StoreUnavailable
            | Code::QuotaExceeded
            | Code::Overloaded
    )
}

fn component(status: StatusCode) -> String {
    format!("Semel{}", status.as_str())
}

#[cfg(test)]
mod tests;
