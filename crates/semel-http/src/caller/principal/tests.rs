//! Whom each source knows, and that no two of them mean two callers by one name.

use std::collections::HashSet;

use http::Request;
use http::header::AUTHORIZATION;

use super::*;

#[derive(Clone)]
struct User(&'static str);

impl AsRef<str> for User {
    fn as_ref(&self) -> &str {
        self.0
    }
}

#[derive(Clone)]
struct Tenant(&'static str);

impl AsRef<str> for Tenant {
    fn as_ref(&self) -> &str {
        self.0
    }
}

fn parts(lines: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder();
    for (name, value) in lines {
        request = request.header(*name, *value);
    }
    let mut request = request.body(()).unwrap();
    request.extensions_mut().insert(PeerAddress("192.0.2.1:4711".parse().unwrap()));
    request.into_parts().0
}

fn named(principal: &Principal, parts: &Parts) -> Option<String> {
    principal.caller(parts).map(|caller| caller.as_str().to_owned())
}

#[test]
fn a_header_is_known_by_its_digest_and_absence_is_nobody() {
    let principal = Principal::header("Authorization");
    let alice = named(&principal, &parts(&[("authorization", "Bearer alice")])).unwrap();
    assert!(alice.starts_with("auth:") && alice.len() == 5 + 64, "{alice}");
    assert!(alice.bytes().all(|byte| byte.is_ascii_graphic()) && !alice.contains("alice"));
    assert_eq!(named(&principal, &parts(&[("Authorization", "Bearer alice")])), Some(alice.clone()));
    assert_ne!(named(&principal, &parts(&[("authorization", "Bearer bob")])), Some(alice));
    for nobody in [
        &[][..],
        &[("authorization", "")],
        &[("authorization", " ")],
        &[("authorization", ""), ("authorization", "")],
    ] {
        assert_eq!(named(&principal, &parts(nobody)), None);
    }
}

#[test]
fn all_lines_of_a_header_count_and_where_one_ends() {
    let principal = Principal::header("x-api-key");
    let mut seen = HashSet::new();
    for lines in [&["a"][..], &["b"], &["a", "b"], &["b", "a"], &["ab"], &["a", "a"], &["a,b"], &["a", ""]] {
        let lines: Vec<_> = lines.iter().map(|line| ("x-api-key", *line)).collect();
        assert!(seen.insert(named(&principal, &parts(&lines)).unwrap()), "{lines:?}");
    }
    assert!(seen.iter().all(|caller| caller.starts_with("header:x-api-key:")));
}

#[test]
fn h60_a_cookie_is_known_by_its_digest_wherever_it_stands() {
    let principal = Principal::cookie("session");
    let of = |lines: &[&str]| {
        let lines: Vec<_> = lines.iter().map(|line| ("cookie", *line)).collect();
        named(&principal, &parts(&lines))
    };
    let ada = of(&["session=ada"]).unwrap();
    assert!(ada.starts_with("cookie:session:") && !ada.contains("ada"), "{ada}");
    // Other cookies, their order, and the crumbs of HTTP/2 do not matter.
    for same in [
        &["theme=dark; session=ada"][..],
        &["session=ada;x=y"],
        &["x=y", "session=ada"],
        &[" session = ada "],
    ] {
        assert_eq!(of(same).as_ref(), Some(&ada), "{same:?}");
    }
    for other in [&["session=bob"][..], &["session=ada; session=bob"], &["session=bob", "session=ada"]] {
        let other = of(other).unwrap();
        assert_ne!(other, ada);
    }
    // Names have a case, and a part of one is another.
    for nobody in
        [&[][..], &["Session=ada"], &["xsession=ada"], &["session"], &["session="], &["theme=session=ada"]]
    {
        assert_eq!(of(nobody), None, "{nobody:?}");
    }
    assert_ne!(named(&Principal::cookie("sid"), &parts(&[("cookie", "sid=ada")])), Some(ada));
}

#[test]
fn h60_only_a_digest_of_what_looks_like_a_jwt_is_worth_a_warning() {
    let digests = |principal: &Principal, value: &str| {
        let parts = parts(&[("authorization", value), ("x-api-key", value)]);
        principal.sources.iter().any(|source| source.digests_jwt(&parts.headers))
    };
    let authorization = Principal::header("Authorization");
    assert!(digests(&authorization, "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"));
    for opaque in
        ["Bearer sk_live_51H", "Bearer a.b.c", "Basic eyJ.a.b", "Bearer eyJhbGciOiJIUzI1NiJ9", "eyJ.a.b"]
    {
        assert!(!digests(&authorization, opaque), "{opaque}");
    }
    assert!(!digests(&Principal::header("x-api-key"), "Bearer eyJ.a.b"));
}

#[cfg(feature = "jwt")]
#[test]
fn h60_a_token_that_is_no_good_is_refused_and_no_other_source_is_asked() {
    let jwt = || crate::Jwt::hmac(b"0123456789abcdef0123456789abcdef", &["HS256"]).unwrap();
    let principal = Principal::jwt(jwt()).or(Principal::shared());
    for bad in ["Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln", "bearer x", "Bearer", "Bearer "] {
        let refused = principal.find(&parts(&[("authorization", bad)]));
        assert!(matches!(refused, Err(UnknownCaller::InvalidToken(_))), "{bad}: {refused:?}");
    }
    let two = parts(&[("authorization", "Bearer a"), ("authorization", "Bearer b")]);
    assert!(matches!(principal.find(&two), Err(UnknownCaller::InvalidToken(_))));
    // Control: without a token the next source is asked.
    for none in [&[][..], &[("authorization", "Basic YTpi")]] {
        assert_eq!(named(&principal, &parts(none)).as_deref(), Some("shared:all"));
    }
    assert!(matches!(Principal::jwt(jwt()).find(&parts(&[])), Err(UnknownCaller::NotStated)));
}

#[test]
fn two_headers_of_one_value_are_two_callers() {
    let parts = parts(&[("x-a", "v"), ("x-b", "v"), ("authorization", "v")]);
    let callers: HashSet<_> = ["x-a", "x-b", "authorization"]
        .map(|name| named(&Principal::header(name), &parts))
        .into_iter()
        .collect();
    assert_eq!(callers.len(), 3);
    assert_eq!(named(&Principal::header("no header"), &parts), None);
    assert_eq!(named(&Principal::header(""), &parts), None);
}

#[test]
fn sources_that_use_one_name_mean_two_callers() {
    let mut parts = parts(&[("authorization", "Bearer 7")]);
    parts.extensions.insert(User("7"));
    parts.extensions.insert(Tenant("7"));
    let user = || Principal::from_extension::<User>();
    let nobody = || Principal::from_extension::<String>();
    let by_function = || Principal::function(|_| Some("7".to_owned()));
    let by_token = || Principal::verified_bearer(|token| Some(token.to_owned()));
    let principals = [
        user(),
        nobody().or(Principal::from_extension::<Tenant>()),
        by_function(),
        Principal::function(|_| None).or(by_function()),
        by_token(),
        Principal::header("authorization"),
        Principal::peer_address(),
        Principal::shared(),
    ];
    let callers: HashSet<_> = principals.iter().map(|principal| named(principal, &parts).unwrap()).collect();
    assert_eq!(callers.len(), principals.len(), "{callers:?}");
    assert_eq!(
        named(&user().or(Principal::from_extension::<Tenant>()), &parts).as_deref(),
        Some("extension:7")
    );
    assert_eq!(named(&nobody().or(user()), &parts).as_deref(), Some("extension.2:7"));
}

#[test]
fn the_first_source_that_knows_decides() {
    let principal = Principal::header("authorization").or(Principal::peer_address()).or(Principal::shared());
    assert!(named(&principal, &parts(&[("authorization", "x")])).unwrap().starts_with("auth:"));
    assert_eq!(named(&principal, &parts(&[])).as_deref(), Some("address:192.0.2.1"));
    let mut without = parts(&[]);
    without.extensions.remove::<PeerAddress>();
    assert_eq!(named(&principal, &without).as_deref(), Some("shared:all"));
    assert_eq!(
        named(&Principal::function(|_| Some(String::new())).or(Principal::shared()), &without).as_deref(),
        Some("shared:all")
    );
}

#[test]
fn a_bearer_token_is_verified_before_it_names_anybody() {
    let principal = Principal::verified_bearer(|token| (token == "good").then(|| "alice".to_owned()));
    for scheme in ["Bearer good", "bearer good", "BEARER  good "] {
        assert_eq!(
            named(&principal, &parts(&[("authorization", scheme)])).as_deref(),
            Some("bearer:alice"),
            "{scheme}"
        );
    }
    for bad in ["Bearer bad", "Basic good", "Bearer", "Bearer ", "Bearergood", "good", "", "Bearer good x"] {
        assert_eq!(named(&principal, &parts(&[("authorization", bad)])), None, "{bad}");
    }
    let twice = parts(&[("authorization", "Bearer good"), ("authorization", "Bearer good")]);
    assert_eq!(named(&principal, &twice), None);
    assert!(twice.headers.contains_key(AUTHORIZATION));
}

#[test]
fn a_spoofed_address_never_picks_a_caller() {
    let lines = [("x-forwarded-for", "1.1.1.1"), ("forwarded", "for=1.1.1.1"), ("x-real-ip", "1.1.1.1")];
    let trusting = Principal::peer_address_behind(vec!["10.0.0.0/8".parse().unwrap()]);
    for principal in [Principal::peer_address(), trusting] {
        assert_eq!(named(&principal, &parts(&lines)).as_deref(), Some("address:192.0.2.1"));
    }
    // The control: from a trusted hop the same header is taken, and only that one.
    let trusting = Principal::peer_address_behind(vec!["192.0.2.0/24".parse().unwrap()]);
    assert_eq!(named(&trusting, &parts(&lines)).as_deref(), Some("address:1.1.1.1"));
    assert_eq!(named(&trusting, &parts(&lines[1..])).as_deref(), Some("address:192.0.2.1"));
}

#[cfg(feature = "axum")]
#[test]
fn the_address_that_axum_knows_is_used_if_no_other_is_stated() {
    let mut parts = parts(&[]);
    parts.extensions.insert(axum::extract::ConnectInfo::<SocketAddr>("192.0.2.9:1".parse().unwrap()));
    assert_eq!(named(&Principal::peer_address(), &parts).as_deref(), Some("address:192.0.2.1"));
    parts.extensions.remove::<PeerAddress>();
    assert_eq!(named(&Principal::peer_address(), &parts).as_deref(), Some("address:192.0.2.9"));
}

#[test]
fn debug_output_names_the_sources() {
    let principal = Principal::header("Authorization")
        .or(Principal::from_extension::<String>())
        .or(Principal::peer_address_behind(vec!["10.0.0.0/8".parse().unwrap()]))
        .or(Principal::verified_bearer(|_| None));
    let printed = format!("{principal:?}");
    for word in ["header authorization", "String", "10.0.0.0/8", "bearer"] {
        assert!(printed.contains(word), "{printed}");
    }
}
