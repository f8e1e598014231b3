//! Requests of HTTP/2 that become two of HTTP/1.1 if they are passed on as they are.

use super::frames;
use super::shape::{Draft, Kind, Right, Shape};

pub(super) fn shapes() -> Vec<Shape> {
    Kind::ALL.into_iter().flat_map(|kind| [fields(kind), pseudo(kind), lengths(kind)].concat()).collect()
}

/// What a request has that is as it should be.
fn usual(draft: &Draft) -> Vec<(String, String)> {
    let mut fields = vec![
        (":method".to_owned(), draft.kind.method().to_owned()),
        (":scheme".to_owned(), "http".to_owned()),
        (":authority".to_owned(), "api.test".to_owned()),
        (":path".to_owned(), draft.target()),
        ("authorization".to_owned(), "Bearer caller-of-shapes".to_owned()),
    ];
    if draft.kind == Kind::Covered {
        fields.push(("idempotency-key".to_owned(), draft.key.clone()));
    }
    fields
}

fn whole(draft: Draft, name: &str, fields: &[(String, String)], body: &[u8], right: Right) -> Shape {
    let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let bytes = frames::request(1, &fields, Some(body));
    draft.whole(&format!("HTTP/2: {name}"), bytes, right).in_frames()
}

/// One more field, before a body with chunks in it for whoever believes in them.
fn fields(kind: Kind) -> Vec<Shape> {
    let bent = [
        ("transfer-encoding", "chunked"),
        ("transfer-encoding", "identity"),
        ("connection", "keep-alive"),
        ("connection", "transfer-encoding"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("upgrade", "h2c"),
        ("x", "a\r\ntransfer-encoding: chunked"),
        ("x", "a\ntransfer-encoding: chunked"),
        ("x", "a\rtransfer-encoding: chunked"),
        ("x", "a\0b"),
        ("x: y\r\ntransfer-encoding", "chunked"),
        ("transfer-encoding: chunked\r\nx", "y"),
        ("x:transfer-encoding", "chunked"),
        ("transfer-encoding ", "chunked"),
        (" x", "y"),
        ("", "y"),
        ("Transfer-Encoding", "chunked"),
        (":unknown", "y"),
        ("host", "api.test\r\nx: y"),
    ];
    let fine = [
        ("te", "trailers"),
        ("host", "other.test"),
        ("x", "y"),
        ("content-encoding", "chunked"),
        ("expect", "100-continue"),
    ];
    let shape = |(name, value): (&str, &str), is_fine: bool| {
        let draft = Draft::new(kind);
        let body = format!("0\r\n\r\n{}", draft.hidden());
        let fields = [usual(&draft), vec![(name.to_owned(), value.to_owned())]].concat();
        let right = if is_fine { Right::Passed(body.clone().into_bytes()) } else { Right::Refused };
        whole(draft, &format!("{name:?}: {value:?}"), &fields, body.as_bytes(), right)
    };
    bent.map(|field| shape(field, false)).into_iter().chain(fine.map(|field| shape(field, true))).collect()
}

/// Another value instead of one of the four that every request starts with. `~` is the target.
fn pseudo(kind: Kind) -> Vec<Shape> {
    let bent = [
        (":path", "~ HTTP/1.1\r\nHost: api.test\r\n\r\nGET /smuggled"),
        (":path", "~\r\nx: y"),
        (":path", "~ x"),
        (":path", "~\0"),
        (":path", ""),
        (":path", "shape"),
        (":method", "POST /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\nPOST"),
        (":method", "POST /smuggled HTTP/1.1\nx:"),
        (":method", "PO ST"),
        (":method", ""),
        (":authority", "api.test\r\ntransfer-encoding: chunked"),
        (":authority", "api.test/smuggled"),
        (":authority", "api test"),
        (":scheme", "http\r\nx: y"),
    ];
    let shape = |(name, value): (&str, &str)| {
        let draft = Draft::new(kind);
        let (value, body) = (value.replace('~', &draft.target()), draft.hidden());
        let mut fields = usual(&draft);
        fields.iter_mut().filter(|(found, _)| found == name).for_each(|(_, found)| found.clone_from(&value));
        whole(draft, &format!("{name} {value:?}"), &fields, body.as_bytes(), Right::Refused)
    };
    let twice = |name: &str, value: &str| {
        let draft = Draft::new(kind);
        let body = draft.hidden();
        let fields = [vec![(name.to_owned(), value.to_owned())], usual(&draft)].concat();
        whole(draft, &format!("{name} twice"), &fields, body.as_bytes(), Right::Refused)
    };
    let late = || {
        let draft = Draft::new(kind);
        let (body, mut fields) = (draft.hidden(), usual(&draft));
        fields.reverse();
        whole(draft, "fields before the first four", &fields, body.as_bytes(), Right::Refused)
    };
    let mut shapes: Vec<_> = bent.map(shape).into();
    shapes.extend([
        twice(":path", "/smuggled/x"),
        twice(":method", "GET"),
        twice(":authority", "other.test"),
        late(),
    ]);
    shapes
}

/// Lengths that the frames disagree with. `N` is the real one.
fn lengths(kind: Kind) -> Vec<Shape> {
    let bent = ["5", "+N", "N, 0", "N0", "-1", "", "18446744073709551616"];
    let shape = |value: &str, right: &dyn Fn(&str) -> Right| {
        let draft = Draft::new(kind);
        let body = draft.hidden();
        let value = value.replace('N', &body.len().to_string());
        let fields = [usual(&draft), vec![("content-length".to_owned(), value.clone())]].concat();
        let right = right(&body);
        whole(draft, &format!("content-length {value:?}"), &fields, body.as_bytes(), right)
    };
    let passed = |body: &str| Right::Passed(body.as_bytes().to_vec());
    // What streams is passed on when its head came, and that says that nothing follows: it is whole then, and so for all.
    let none = shape("0", &|_| passed(""));
    let bent = bent.map(|value| shape(value, &|_| Right::Refused));
    bent.into_iter().chain([none, shape("N", &passed)]).collect()
}
