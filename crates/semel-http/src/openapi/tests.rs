//! The description says what the profile says, and refers to nothing that is not in it.

use std::collections::BTreeMap;

use super::*;
use crate::profile::Rules;

fn required() -> Profile {
    let ietf = Profile::ietf();
    Profile { rules: Rules { key: KeyPresence::Required, ..ietf.rules }, ..ietf }
}

/// Every `$ref` in a value.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str() {
                    Some(target) if name == "$ref" => found.push(target.to_owned()),
                    _ => references(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The codes that are described, and under which status.
fn described(fragment: &Value) -> BTreeMap<String, u64> {
    let mut codes = BTreeMap::new();
    for response in fragment["components"]["responses"].as_object().unwrap().values() {
        let own = &response["content"]["application/problem+json"]["schema"]["allOf"][1]["properties"];
        for code in own["code"]["enum"].as_array().unwrap() {
            let status = own["status"]["const"].as_u64().unwrap();
            assert!(
                codes.insert(code.as_str().unwrap().to_owned(), status).is_none(),
                "{code} is there twice"
            );
        }
    }
    codes
}

#[test]
fn every_reference_leads_somewhere() {
    for profile in [Profile::ietf(), Profile::stripe(), required()] {
        let fragment = openapi_fragment(&profile);
        let mut found = Vec::new();
        references(&fragment, &mut found);
        assert!(found.len() > 10, "{found:?}");
        for target in found {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(fragment.pointer(pointer).is_some(), "{target} leads nowhere");
        }
    }
}

#[test]
fn every_refusal_has_the_status_that_the_profile_says() {
    for profile in [Profile::ietf(), Profile::stripe(), required()] {
        let described = described(&openapi_fragment(&profile));
        for code in Code::ALL {
            let expected = (code != Code::KeyMissing || profile.rules.key == KeyPresence::Required)
                .then(|| u64::from(profile.statuses.of(code).as_u16()));
            assert_eq!(described.get(code.word()).copied(), expected, "{code:?}");
        }
    }
    assert_eq!(described(&openapi_fragment(&Profile::ietf()))["mismatch"], 422);
    assert_eq!(described(&openapi_fragment(&Profile::stripe()))["mismatch"], 400);
}

#[test]
fn the_parameter_is_required_where_the_key_is() {
    let of =
        |profile: &Profile| openapi_fragment(profile)["components"]["parameters"]["IdempotencyKey"].clone();
    assert_eq!(of(&Profile::ietf())["required"], false);
    assert_eq!(of(&required())["required"], true);
    assert_eq!(of(&required())["name"], "idempotency-key");
    let mut renamed = Profile::ietf();
    renamed.names.key = http::HeaderName::from_static("x-request-key");
    renamed.key.unquoted = UnquotedKeys::Refused;
    assert_eq!(of(&renamed)["name"], "x-request-key");
    assert!(of(&renamed)["description"].as_str().unwrap().contains("quotes are part"));
}

#[test]
fn an_operation_names_every_response_and_header() {
    let mut profile = Profile::ietf();
    let operation = openapi_fragment(&profile)["x-semel-operation"].clone();
    let statuses: Vec<_> = operation["responses"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(statuses, ["400", "409", "413", "422", "429", "502", "503", "504"]);
    let headers: Vec<_> = operation["headers"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(headers, ["idempotency-expires", "idempotent-replayed"]);
    profile.names.expires = None;
    profile.rules.on_outage = semel::OnOutage::Open;
    let operation = openapi_fragment(&profile)["x-semel-operation"].clone();
    let headers: Vec<_> = operation["headers"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(headers, ["idempotency-protected", "idempotent-replayed"]);
}

#[test]
fn refusals_that_are_worth_a_retry_say_when() {
    let fragment = openapi_fragment(&Profile::ietf());
    for (name, response) in fragment["components"]["responses"].as_object().unwrap() {
        let says = response["headers"]["Retry-After"].is_object();
        assert_eq!(says, ["Semel409", "Semel429", "Semel503", "Semel504"].contains(&name.as_str()), "{name}");
    }
}
