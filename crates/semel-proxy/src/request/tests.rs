//! A client's request as the upstream gets it.

use UpstreamVersion::{Http1, Http2};

use super::*;

fn map(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, value.parse().expect("is a value"));
    }
    headers
}

fn shown(headers: &HeaderMap) -> Vec<String> {
    let mut lines: Vec<_> =
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().expect("is text"))).collect();
    lines.sort();
    lines
}

#[test]
fn what_is_said_of_a_client_depends_on_whether_its_peer_is_trusted() {
    let says = [
        ("host", "a.example"),
        ("forwarded", "for=1.1.1.1"),
        ("x-forwarded-for", "1.1.1.1"),
        ("x-forwarded-for", "2.2.2.2"),
        ("x-forwarded-host", "other.example"),
        ("x-forwarded-port", "99"),
        ("x-forwarded-proto", "ws"),
        ("x-real-ip", "1.1.1.1"),
    ];
    let tell = |over_tls, peer: &str, lines: &[(&'static str, &str)]| {
        let forwarded = Forwarded::new(over_tls, vec!["10.0.0.0/8".parse().expect("is a network")]);
        let mut headers = map(lines);
        forwarded.tell(&mut headers, peer.parse().expect("is an address"));
        shown(&headers)
    };
    let of_a_stranger = |peer: &str, proto: &str| {
        [
            "host: a.example".to_owned(),
            format!("x-forwarded-for: {peer}"),
            "x-forwarded-host: a.example".to_owned(),
            format!("x-forwarded-proto: {proto}"),
        ]
    };
    assert_eq!(tell(false, "9.9.9.9", &says), of_a_stranger("9.9.9.9", "http"));
    assert_eq!(tell(true, "::ffff:9.9.9.9", &says), of_a_stranger("9.9.9.9", "https"));
    assert_eq!(
        tell(true, "::ffff:10.0.0.1", &says),
        [
            "forwarded: for=1.1.1.1",
            "host: a.example",
            "x-forwarded-for: 1.1.1.1, 2.2.2.2, 10.0.0.1",
            "x-forwarded-host: other.example",
            "x-forwarded-port: 99",
            "x-forwarded-proto: ws",
            "x-real-ip: 1.1.1.1",
        ]
    );
    assert_eq!(
        tell(true, "10.0.0.1", &[("host", "a.example")]),
        of_a_stranger("10.0.0.1", "https"),
        "a trusted proxy that says nothing"
    );
}

#[test]
fn what_connection_names_goes_with_it_but_for_what_frames_and_routes() {
    let mut headers = map(&[
        ("connection", "close, X-One"),
        ("connection", " x-two ,content-length,Host,, bad name"),
        ("x-one", "1"),
        ("x-two", "2"),
        ("x-three", "3"),
        ("content-length", "4"),
        ("host", "a"),
        ("keep-alive", "5"),
        ("te", "trailers, deflate"),
        ("expect", "100-continue"),
        ("proxy", "evil"),
        ("proxy-authorization", "x"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
    ]);
    strip_request(&mut headers);
    assert_eq!(shown(&headers), ["content-length: 4", "host: a", "te: trailers", "x-three: 3"]);
    let mut headers = map(&[("te", "deflate")]);
    strip_request(&mut headers);
    assert_eq!(shown(&headers), [""; 0]);
}

#[test]
fn trailers_say_nothing_that_only_a_head_may() {
    let both =
        [("grpc-status", "0"), ("x-sum", "1"), ("host", "a"), ("content-length", "1"), ("cookie", "a")];
    let request =
        [("idempotency-key", "k"), ("x-idempotency-key", "k"), ("x_sum", "1"), ("x-forwarded-for", "1")];
    let response =
        [("set-cookie", "a"), ("idempotency-expires", "1"), ("idempotent-replayed", "true"), ("vary", "*")];
    let mut trailers = map(&[&both[..], &request].concat());
    strip_trailers(&mut trailers);
    assert_eq!(shown(&trailers), ["grpc-status: 0", "x-sum: 1"]);
    let mut trailers = map(&[&both[..], &response].concat());
    strip_response_trailers(&mut trailers);
    assert_eq!(shown(&trailers), ["grpc-status: 0", "x-sum: 1"]);
}

#[test]
fn a_request_is_pointed_at_the_upstream_with_its_clients_host() {
    let pointed = |upstream: &str, version, target: &str, host: Option<&str>| {
        let upstream = upstream.parse().expect("is a URL");
        let to = Target::new(&upstream, version).expect("can be an upstream");
        let mut request = Request::options(target);
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        let mut request = request.body(()).expect("is a request");
        to.point(&mut request).expect("can be sent");
        let host = request.headers().get(HOST).map(|host| host.to_str().expect("is text").to_owned());
        (request.uri().to_string(), host.unwrap_or_default(), request.version())
    };
    let (plain, based) = ("http://up.example:81", "https://up.example/base/");
    let one = |uri: &str, host: &str| (uri.to_owned(), host.to_owned(), Version::HTTP_11);
    let two = |uri: &str| (uri.to_owned(), String::new(), Version::HTTP_2);
    assert_eq!(pointed(plain, Http1, "/a?b", Some("c.example")), one("/a?b", "c.example"));
    assert_eq!(pointed(plain, Http1, "/a", None), one("/a", "up.example:81"));
    assert_eq!(pointed(based, Http1, "/a?b", Some("c")), one("/base/a?b", "c"));
    assert_eq!(pointed(based, Http1, "*", Some("c")), one("*", "c"));
    assert_eq!(pointed(plain, Http2, "/a?b", Some("c.example:8")), two("http://c.example:8/a?b"));
    assert_eq!(pointed(based, Http2, "/a", None), two("https://up.example/base/a"));
}
