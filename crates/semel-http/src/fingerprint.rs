//! What two requests under one key must agree on: method, path, query, media type and body.

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Uri};
use semel::Fingerprint;

use crate::json::{JsonPath, comparable};

/// Digests a request. A JSON body counts by what it means, without what `left_out` names; every other one byte by byte,
/// and so does JSON whose meaning cannot be told for sure.
pub(crate) fn fingerprint(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
    left_out: &[JsonPath],
) -> Fingerprint {
    let media_type = media_type(headers);
    let (form, body) =
        if is_json(&media_type) { comparable(body, left_out) } else { ("raw", Cow::Borrowed(body)) };
    let (is_queried, query) = match uri.query() {
        Some(query) => ("?", query),
        None => ("", ""),
    };
    Fingerprint::of_parts([
        method.as_str().as_bytes(),
        uri.path().as_bytes(),
        is_queried.as_bytes(),
        query.as_bytes(),
        &media_type,
        form.as_bytes(),
        &body,
    ])
}

/// The media type without its parameters, in lower case. Several lines are taken as one list, which is no JSON.
fn media_type(headers: &HeaderMap) -> Cow<'_, [u8]> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter().map(|line| essence(line.as_bytes()));
    let first = lines.next().unwrap_or_default();
    let mut all = Cow::Borrowed(first);
    for line in lines {
        all.to_mut().push(b',');
        all.to_mut().extend_from_slice(line);
    }
    if all.iter().any(u8::is_ascii_uppercase) {
        all.to_mut().make_ascii_lowercase();
    }
    all
}

/// What comes before the parameters.
fn essence(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

fn is_json(media_type: &[u8]) -> bool {
    !media_type.contains(&b',') && (media_type == b"application/json" || media_type.ends_with(b"+json"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(method: &str, uri: &str, types: &[&str], body: &str) -> Fingerprint {
        leaving(method, uri, types, body, &[])
    }

    fn leaving(method: &str, uri: &str, types: &[&str], body: &str, left_out: &[&str]) -> Fingerprint {
        let mut headers = HeaderMap::new();
        for media_type in types {
            headers.append(CONTENT_TYPE, HeaderValue::from_str(media_type).unwrap());
        }
        let left_out: Vec<JsonPath> = left_out.iter().map(|path| path.parse().unwrap()).collect();
        fingerprint(&method.parse().unwrap(), &uri.parse().unwrap(), &headers, body.as_bytes(), &left_out)
    }

    fn json(body: &str) -> Fingerprint {
        of("POST", "/charges", &["application/json"], body)
    }

    #[test]
    fn h30_h31_every_part_of_a_request_counts() {
        let requests = [
            of("POST", "/a", &[], "x"),
            of("PATCH", "/a", &[], "x"),
            of("POST", "/b", &[], "x"),
            of("POST", "/a/", &[], "x"),
            of("POST", "/A", &[], "x"),
            of("POST", "/a?", &[], "x"),
            of("POST", "/a?x", &[], ""),
            of("POST", "/a?b=1", &[], "x"),
            of("POST", "/a?b=1&c=2", &[], "x"),
            of("POST", "/a?c=2&b=1", &[], "x"),
            of("POST", "/a", &["text/plain"], "x"),
            of("POST", "/a", &["text/plain", "text/plain"], "x"),
            of("POST", "/a", &[], "y"),
            of("POST", "/a", &[], ""),
            of("POST", "/a", &[], "x "),
        ];
        for (i, a) in requests.iter().enumerate() {
            for (j, b) in requests.iter().enumerate() {
                assert_eq!(a == b, i == j, "{i} and {j}");
            }
        }
    }

    #[test]
    fn h33_parameters_and_case_of_the_media_type_do_not_count() {
        let plain = of("POST", "/", &["application/json"], "{}");
        for media_type in
            ["Application/JSON", "application/json; charset=utf-8", " application/json ;a=b;c=d"]
        {
            assert_eq!(of("POST", "/", &[media_type], "{ }"), plain, "{media_type}");
        }
        assert_ne!(of("POST", "/", &["application/merge-patch+json"], "{}"), plain);
    }

    #[test]
    fn h33_json_counts_by_what_it_means() {
        assert_eq!(json(r#"{"a":1,"b":2}"#), json("{ \"b\": 2.0,\n\"a\": 1 }"));
        assert_ne!(json(r#"{"a":null}"#), json("{}"));
        assert_ne!(json("[1,2]"), json("[2,1]"));
        for media_type in ["application/vnd.api+json", "application/merge-patch+JSON;v=1"] {
            let of = |body| of("PATCH", "/", &[media_type], body);
            assert_eq!(of(r#"{"a":1,"b":2}"#), of(r#"{"b":2,"a":1}"#), "{media_type}");
        }
    }

    #[test]
    fn h33_what_is_not_json_counts_byte_by_byte() {
        for media_type in [
            "text/json",
            "application/jsonp",
            "application/x-json",
            "text/plain",
            "application/json-seq",
            "x",
        ] {
            let of = |body| of("POST", "/", &[media_type], body);
            assert_ne!(of(r#"{"a":1,"b":2}"#), of(r#"{"b":2,"a":1}"#), "{media_type}");
        }
        let unsaid = |body| of("POST", "/", &[], body);
        assert_ne!(unsaid("{}"), unsaid("{ }"));
        let twice = |body| of("POST", "/", &["application/json", "application/json"], body);
        assert_ne!(twice("{}"), twice("{ }"));
        let mixed = |body| of("POST", "/", &["text/plain", "application/vnd.api+json"], body);
        assert_ne!(mixed("{}"), mixed("{ }"));
    }

    #[test]
    fn h33_json_without_a_canonical_form_counts_byte_by_byte() {
        assert_ne!(json(r#"{"a":9007199254740993}"#), json(r#"{"a":9007199254740992}"#));
        assert_ne!(json(r#"{"a":9007199254740993}"#), json(r#"{ "a":9007199254740993}"#));
        assert_eq!(json(r#"{"a":9007199254740993}"#), json(r#"{"a":9007199254740993}"#));
        assert_ne!(json(r#"{"a":1,"a":2}"#), json(r#"{"a":2,"a":1}"#));
        assert_ne!(json("{"), json("{ "));
    }

    #[test]
    fn h33_fields_that_are_left_out_do_not_count() {
        let of = |body| leaving("POST", "/", &["application/json"], body, &["$.client_time"]);
        assert_eq!(of(r#"{"amount":1,"client_time":1}"#), of(r#"{"client_time":2,"amount":1}"#));
        assert_eq!(of(r#"{"amount":1,"client_time":1}"#), of(r#"{"amount":1}"#));
        assert_ne!(of(r#"{"amount":1,"client_time":1}"#), of(r#"{"amount":2,"client_time":1}"#));
    }
}
