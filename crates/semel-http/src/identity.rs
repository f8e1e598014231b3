//! The identity of a covered request: its key, the caller that the key belongs to, and a label for people.

use http::request;
use semel::record::LABEL_BYTES_MAX;
use semel::{Key, RecordId};

use crate::caller::Caller;
use crate::key::key_of;
use crate::layer::Inner;
use crate::problem::{Code, Problem};
use crate::profile::{KeyPresence, KeyScope, Rules};

/// The engine's key of a request, and the caller that it belongs to.
pub(crate) fn identify(
    inner: &Inner,
    rules: &Rules,
    parts: &request::Parts,
) -> Result<(Key, Caller), Problem> {
    let profile = &inner.settings.profile;
    let name = match key_of(&parts.headers, &profile.names, profile.key) {
        Ok(Some(name)) => name,
        Ok(None) if rules.key == KeyPresence::Required => {
            let detail =
                format!("This operation wants a key of the client's own in `{}`.", profile.names.key);
            return Err(Problem::new(Code::KeyMissing, detail));
        }
        Ok(None) => return Err(Problem::new(Code::KeyMalformed, "The key's header has no value.")),
        Err(malformed) => return Err(Problem::new(Code::KeyMalformed, malformed.to_string())),
    };
    let caller = inner.principal.caller(parts).ok_or_else(|| {
        Problem::new(Code::CallerUnknown, "A key belongs to a caller: say who you are, then send it again.")
    })?;
    let scope = inner.settings.scope.iter().map(String::as_str).chain([caller.as_str()]);
    let key = match rules.scope {
        KeyScope::Caller => Key::scoped(scope, "http", &name),
        KeyScope::Route => Key::scoped(scope, &operation(parts), &name),
    };
    key.map(|key| (key, caller.clone())).map_err(|error| Problem::new(Code::KeyMalformed, error.to_string()))
}

/// Method, path and query as an operation; digested if they are longer than an operation may be.
fn operation(parts: &request::Parts) -> String {
    let target = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let operation = format!("{} {target}", parts.method);
    if operation.len() <= semel::PART_BYTES_MAX {
        return operation;
    }
    let digest = semel::Fingerprint::of_parts([operation.as_bytes()]);
    format!("{} digest:{}", parts.method, RecordId::from_bytes(*digest.as_bytes()))
}

/// Method and path, in words for people, cut to what a label may have. Without the query, which may hold secrets.
pub(crate) fn label(parts: &request::Parts) -> String {
    let mut label = format!("{} {}", parts.method, parts.uri.path());
    label.truncate(label.floor_char_boundary(LABEL_BYTES_MAX));
    label
}
