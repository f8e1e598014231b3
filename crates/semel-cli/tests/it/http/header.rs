//! H01 to H08: what a key looks like.

use test_http::Request;

use super::front::{Front, Kind};
use super::rules::rules;
use super::setup::Setup;

rules! {
    h01_a_quoted_value_is_the_key_without_its_quotes
    h02_a_bare_value_is_the_same_key_as_a_quoted_one
    h02_an_apostrophe_is_no_quote
    h02_a_bare_value_of_other_characters_is_refused
    h02_strict_mode_refuses_every_bare_value
    h02_a_key_is_trimmed
    h03_escaped_quotes_and_backslashes_decode
    h03_a_string_that_is_none_is_refused
    h04_parameters_are_parsed_and_ignored
    h04_what_is_no_parameter_is_refused
    h05_two_lines_or_a_list_are_refused
    h06_an_empty_key_is_refused
    h07_a_key_of_255_characters_is_fine_and_of_256_is_refused
    h07_the_bound_is_configurable
    h08_the_name_of_the_field_is_case_insensitive
    h08_the_name_of_the_field_is_configurable
    h08_aliases_may_agree_and_must_not_disagree
}

fn charge(value: &[u8]) -> Request {
    Request::post("/charges").header_bytes("Idempotency-Key", value)
}

/// All of these are one key.
async fn are_one_key(front: &Front, values: &[&[u8]]) {
    let before = front.service.count();
    let first = front.send(&charge(values[0])).await;
    first.ran(201);
    for value in &values[1..] {
        front.send(&charge(value)).await.replays(&first);
    }
    assert_eq!(front.service.count(), before + 1);
}

/// Each of these is refused, and nothing runs.
async fn are_malformed(front: &Front, values: &[&[u8]]) {
    for value in values {
        let answer = front.send(&charge(value)).await;
        assert_eq!(answer.status, 400, "{} is taken", String::from_utf8_lossy(value));
        answer.refused(400, "key_malformed");
    }
    assert_eq!(front.service.count(), 0);
}

async fn h01_a_quoted_value_is_the_key_without_its_quotes(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    are_one_key(&front, &[b"\"8e03978e-40d5\"", b"\"8e03978e-40d5\"", b"8e03978e-40d5"]).await;
    are_one_key(&front, &[b"\"with a space, and; more\"", b"\"with a space, and; more\""]).await;
    front.send(&charge(b"\"another\"")).await.ran(201);
    assert_eq!(front.service.count(), 3);
}

async fn h02_a_bare_value_is_the_same_key_as_a_quoted_one(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    are_one_key(&front, &[b"8e03978e-40d5", b"\"8e03978e-40d5\"", b"8e03978e-40d5"]).await;
    let bare = b"!#$%&()*+-./0189:<=>?@AZ[]^_`az{|}~";
    let quoted = [b"\"".as_slice(), bare, b"\""].concat();
    are_one_key(&front, &[bare, &quoted]).await;
}

async fn h02_an_apostrophe_is_no_quote(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    are_one_key(&front, &[b"o'brien-1", b"\"o'brien-1\""]).await;
    let front = Front::start(kind, Setup::new()).await;
    are_malformed(&front, &[b"'o-brien-1'"]).await;
}

async fn h02_a_bare_value_of_other_characters_is_refused(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    are_malformed(
        &front,
        &[b"a b", b"a,b", b"a;b", b"a\"b", b"a\tb", b"a\"", "caf\u{e9}".as_bytes(), b"a\xff"],
    )
    .await;
}

async fn h02_strict_mode_refuses_every_bare_value(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("key", "unquoted = \"refused\"")).await;
    are_malformed(&front, &[b"8e03978e-40d5", b"a", b"?1", b"12", b":YQ==:"]).await;
    are_one_key(&front, &[b"\"8e03978e-40d5\"", b"\"8e03978e-40d5\""]).await;
}

async fn h02_a_key_is_trimmed(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    are_malformed(&front, &[b"\" \"", b"\"    \""]).await;
    are_one_key(&front, &[b"\" k \"", b"\"k\"", b"k", b"  k  "]).await;
}

async fn h03_escaped_quotes_and_backslashes_decode(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    are_one_key(&front, &[br#""a\\b""#, br"a\b"]).await;
    are_one_key(&front, &[br#""a\"b""#, br#""a\"b""#]).await;
    // Decoded it has 255 characters, written it has 510.
    are_one_key(&front, &[format!("\"{}\"", r"\\".repeat(255)).as_bytes(), r"\".repeat(255).as_bytes()])
        .await;
}

async fn h03_a_string_that_is_none_is_refused(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let other_escapes: [&[u8]; 3] = [br#""a\b""#, br#""a\n""#, br#""a\u0041""#];
    are_malformed(&front, &other_escapes).await;
    are_malformed(&front, &[b"\"abc", b"\"", br#""abc\"#, br#""abc\""#]).await;
    are_malformed(&front, &[b"\"a\"b", b"\"a\" b", b"\"a\"\"b\"", b"\"a\"/"]).await;
    are_malformed(&front, &[b"\"a\tb\"", "\"caf\u{e9}\"".as_bytes(), b"\"\x80\""]).await;
}

async fn h04_parameters_are_parsed_and_ignored(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let written: [&[u8]; 5] =
        [b"\"k\";v=1", b"\"k\"", b"\"k\"; v", b"\"k\";a=?1;b=\"x;y\";c=:YQ==:;*d=1.5", b"\"k\";v=tok/en"];
    are_one_key(&front, &written).await;
}

async fn h04_what_is_no_parameter_is_refused(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    are_malformed(
        &front,
        &[b"\"k\";", b"\"k\";V=1", b"\"k\";v=", b"\"k\";=1", b"\"k\";v=\"x", b"\"k\" ;v=1"],
    )
    .await;
}

async fn h05_two_lines_or_a_list_are_refused(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for (one, other) in [("a", "b"), ("a", "a"), ("\"a\"", "\"a\""), ("a", "")] {
        let twice = Request::post("/charges").key(one).key(other);
        front.send(&twice).await.refused(400, "key_malformed");
    }
    are_malformed(
        &front,
        &[b"a, b", b"a,a", b"\"a\", \"b\"", b"\"a\",\"a\"", b"\"a\";v=1,\"a\"", b"a,", b",a"],
    )
    .await;
}

async fn h06_an_empty_key_is_refused(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    are_malformed(&front, &[b"", b"\"\"", b"   ", b"\"\";v=1"]).await;
}

async fn h07_a_key_of_255_characters_is_fine_and_of_256_is_refused(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let (fits, over) = ("k".repeat(255), "k".repeat(256));
    are_malformed(&front, &[over.as_bytes(), format!("\"{over}\"").as_bytes()]).await;
    are_one_key(&front, &[fits.as_bytes(), format!("\"{fits}\"").as_bytes()]).await;
}

async fn h07_the_bound_is_configurable(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("key", "chars_max = 8")).await;
    are_malformed(&front, &[b"123456789", b"\"123456789\""]).await;
    are_one_key(&front, &[b"12345678", b"\"12345678\""]).await;
}

async fn h08_the_name_of_the_field_is_case_insensitive(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let first = front.send(&Request::post("/charges").header("Idempotency-Key", "k")).await;
    first.ran(201);
    for name in ["idempotency-key", "IDEMPOTENCY-KEY", "iDeMpOtEnCy-KeY"] {
        front.send(&Request::post("/charges").header(name, "k")).await.replays(&first);
    }
    let twice = Request::post("/charges").header("Idempotency-Key", "k").header("IDEMPOTENCY-KEY", "k");
    front.send(&twice).await.refused(400, "key_malformed");
    assert_eq!(front.service.count(), 1);
}

async fn h08_the_name_of_the_field_is_configurable(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("headers", "key = \"X-Request-Key\"")).await;
    let first = front.send(&Request::post("/charges").header("x-request-key", "k")).await;
    first.ran(201);
    front.send(&Request::post("/charges").header("X-Request-Key", "k")).await.replays(&first);
    // The usual name is a header like any other now.
    for _ in 0..2 {
        front.send(&Request::post("/charges").key("k")).await.ran(201);
    }
    assert_eq!(front.service.count(), 3);
}

async fn h08_aliases_may_agree_and_must_not_disagree(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("headers", "aliases = [\"X-Request-Key\"]")).await;
    let first = front.send(&Request::post("/charges").header("x-request-key", "k")).await;
    first.ran(201);
    front.send(&Request::post("/charges").key("k")).await.replays(&first);
    let both = |alias: &str| Request::post("/charges").key("k").header("x-request-key", alias);
    front.send(&both("\"k\"")).await.replays(&first);
    front.send(&both("other")).await.refused(400, "key_malformed");
    front.send(&both("")).await.refused(400, "key_malformed");
    assert_eq!(front.service.count(), 1);
}
