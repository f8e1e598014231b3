//! The rules of the header, one test a rule.

use std::borrow::Cow;

use super::*;
use crate::profile::Profile;

const LENIENT: KeyForm = KeyForm { unquoted: UnquotedKeys::Accepted, chars_max: 255 };
const STRICT: KeyForm = KeyForm { unquoted: UnquotedKeys::Refused, chars_max: 255 };

fn read_as(form: KeyForm, lines: &[(&str, &[u8])]) -> Result<Option<String>, Malformed> {
    let mut names = Profile::ietf().names;
    names.key_aliases =
        vec![HeaderName::from_static("x-idempotency-key"), HeaderName::from_static("x-request-key")];
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(value).unwrap());
    }
    Ok(key_of(&headers, &names, form)?.map(Cow::into_owned))
}

fn one(value: &str) -> Option<String> {
    read_as(LENIENT, &[("Idempotency-Key", value.as_bytes())]).ok().map(Option::unwrap)
}

fn strict(value: &str) -> Option<String> {
    read_as(STRICT, &[("Idempotency-Key", value.as_bytes())]).ok().map(Option::unwrap)
}

#[test]
fn h01_a_quoted_key_is_the_text_in_the_quotes() {
    assert_eq!(one("\"8e03978e-40d5\"").as_deref(), Some("8e03978e-40d5"));
    assert_eq!(strict("\"8e03978e-40d5\"").as_deref(), Some("8e03978e-40d5"));
    assert_eq!(one("\"a, b; c\"").as_deref(), Some("a, b; c"));
    assert_eq!(read_as(LENIENT, &[]), Ok(None));
}

#[test]
fn h02_a_bare_key_is_the_same_key_unless_strict() {
    assert_eq!(one("8e03978e-40d5"), one("\"8e03978e-40d5\""));
    assert_eq!(one("  k  ").as_deref(), Some("k"));
    assert_eq!(strict("8e03978e-40d5"), None);
    for value in ["a b", "a,b", "a;b", "a\"b", "'a'", "a\tb", "\tk", "k\t"] {
        assert_eq!(one(value), None, "{value}");
    }
    assert!(read_as(LENIENT, &[("idempotency-key", b"f\xc3\xbc")]).is_err());
    assert!(read_as(LENIENT, &[("idempotency-key", b"f\xff")]).is_err());
    let visible: String = (0x21..0x7f_u8).map(char::from).filter(|c| !",;\"'".contains(*c)).collect();
    assert_eq!(one(&visible), Some(visible));
}

#[test]
fn h02_a_key_is_trimmed_in_its_quotes_also() {
    assert_eq!(one("\" k \"").as_deref(), Some("k"));
    assert_eq!(one("\" \""), None);
    assert_eq!(one("\"a b\"").as_deref(), Some("a b"));
}

#[test]
fn h03_two_escapes_decode_and_everything_else_is_refused() {
    assert_eq!(one(r#""a\"b\\c""#).as_deref(), Some(r#"a"b\c"#));
    for value in [r#""a\n""#, r#""a\""#, r#""a"#, r#"""#, r#""a"b"#, r#""a" b"#, r#""a" ;v"#, "\"a\tb\""] {
        assert_eq!(one(value), None, "{value}");
    }
    assert!(read_as(LENIENT, &[("idempotency-key", b"\"f\xc3\xbc\"")]).is_err());
}

#[test]
fn h02_h03_a_key_that_is_not_ascii_is_told_what_would_be_taken() {
    for form in [LENIENT, STRICT] {
        for value in [&b"f\xc3\xbcr"[..], b"\"f\xc3\xbcr\"", b"f\xff", b"a,\xc3\xbc", b"\"\xc3\xbc\", \"b\""]
        {
            let refused = read_as(form, &[("idempotency-key", value)]).unwrap_err().to_string();
            assert!(refused.contains("printable ASCII") && refused.contains("percent-encoded"), "{refused}");
            // It must not be sent to get quotes, only to be refused again.
            assert!(!refused.contains("in double quotes"), "{refused}");
        }
    }
    // What the refusals propose is taken.
    for taken in ["f%C3%BCr", "ZsO8cg==", "8e03978e-40d5-43dd-bc93-6894a57f9324"] {
        assert_eq!(one(taken).as_deref(), Some(taken));
    }
    // A key that only lacks its quotes still hears of them.
    let spaced = read_as(LENIENT, &[("idempotency-key", b"a b")]).unwrap_err().to_string();
    assert!(spaced.contains("double quotes"), "{spaced}");
}

#[test]
fn h04_parameters_are_parsed_and_ignored() {
    assert_eq!(one("\"k\";v=1"), one("k"));
    assert_eq!(one("\"k\"; v=:YQ==:;w"), one("k"));
    assert_eq!(one("\"k\";v="), None);
}

#[test]
fn h05_two_keys_are_refused_even_if_they_agree() {
    assert!(read_as(LENIENT, &[("idempotency-key", b"a"), ("Idempotency-Key", b"a")]).is_err());
    for value in ["\"a\", \"b\"", "\"a\",\"a\"", "a,b", "a, b", "\"a\",", ",a"] {
        let refused = read_as(LENIENT, &[("idempotency-key", value.as_bytes())]).unwrap_err();
        assert_eq!(refused.fault, Fault::TwoKeys, "{value}");
    }
    // A String whose lines were joined by somebody on the way is one String again; in two lines it is none.
    assert!(read_as(LENIENT, &[("idempotency-key", b"\"foo"), ("idempotency-key", b"bar\"")]).is_err());
}

#[test]
fn h06_an_empty_key_is_refused() {
    for value in ["", " ", "\"\"", "\"  \"", "\"\";v=1"] {
        let refused = read_as(LENIENT, &[("idempotency-key", value.as_bytes())]).unwrap_err();
        assert_eq!(refused.fault, Fault::Empty, "{value:?}");
    }
}

#[test]
fn h07_the_bound_is_in_characters_after_decoding() {
    let long = "k".repeat(255);
    assert_eq!(one(&long), Some(long.clone()));
    assert_eq!(one(&format!("{long}k")), None);
    let escaped = "\\\\".repeat(255);
    assert_eq!(one(&format!("\"{escaped}\"")), Some("\\".repeat(255)));
    assert_eq!(one(&format!("\"{escaped}k\"")), None);
    let four = KeyForm { chars_max: 4, ..LENIENT };
    assert!(read_as(four, &[("idempotency-key", b"abcd")]).is_ok());
    assert!(read_as(four, &[("idempotency-key", b"abcde")]).is_err());
    // However generous the bound, what the engine cannot name is refused here.
    let generous = KeyForm { chars_max: 100_000, ..LENIENT };
    assert!(read_as(generous, &[("idempotency-key", "k".repeat(1_024).as_bytes())]).is_ok());
    assert!(read_as(generous, &[("idempotency-key", "k".repeat(1_025).as_bytes())]).is_err());
}

#[test]
fn h08_sources_may_agree_and_must_not_disagree() {
    assert_eq!(read_as(LENIENT, &[("IDEMPOTENCY-KEY", b"k")]), Ok(Some("k".to_owned())));
    assert_eq!(read_as(LENIENT, &[("X-Request-Key", b"k")]), Ok(Some("k".to_owned())));
    let agree: &[(&str, &[u8])] = &[("x-idempotency-key", b"\"k\""), ("x-request-key", b"k")];
    assert_eq!(read_as(LENIENT, agree), Ok(Some("k".to_owned())));
    for (a, b) in [("idempotency-key", "x-request-key"), ("x-idempotency-key", "x-request-key")] {
        let refused = read_as(LENIENT, &[(a, b"k"), (b, b"l")]).unwrap_err();
        assert!(refused.to_string().contains(a) && refused.to_string().contains(b), "{refused}");
    }
    // A source that cannot be read is not outvoted by one that can.
    assert!(read_as(LENIENT, &[("idempotency-key", b"k"), ("x-request-key", b"")]).is_err());
    assert_eq!(read_as(LENIENT, &[("x-unknown-key", b"k")]), Ok(None));
}

#[test]
fn a_refusal_never_repeats_the_key() {
    let secret = "hunter2";
    for value in [
        format!("\"{secret}"),
        format!("{secret},{secret}"),
        format!("{secret} {secret}"),
        secret.repeat(100),
        format!("\"{secret}\"x"),
    ] {
        let refused = read_as(LENIENT, &[("idempotency-key", value.as_bytes())]).unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains(secret), "{refused:?}");
        assert!(refused.to_string().contains("send") || refused.to_string().contains("put"), "{refused}");
    }
}
