//! H30 to H34: the same key for another request.

use test_http::Request;

use super::front::{Front, Kind};
use super::multiplexed::Multiplexed;
use super::responses::pattern;
use super::rules::rules;
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;

rules! {
    h30_another_body_is_a_mismatch_and_the_original_still_replays
    h31_another_method_path_or_query_is_a_mismatch
    h31_keys_that_reach_over_a_route_are_separate_elsewhere
    h31_two_tenants_by_host_name_never_share_a_key
    h31_a_request_without_a_host_has_keys_of_its_own
    h31_hosts_that_are_one_share_their_keys
    h31_an_upgrade_runs_no_key_of_0_1_again
    h32_a_mismatch_is_told_at_once_while_the_first_runs
    h33_json_bodies_that_mean_the_same_are_the_same
    h33_json_bodies_that_mean_something_else_are_a_mismatch
    h33_bodies_of_other_types_are_compared_byte_for_byte
    h33_the_media_type_counts_without_its_parameters
    h33_fields_can_be_left_out
    h33_the_whole_body_counts
    h33_a_covered_body_over_the_bound_is_refused_and_nothing_is_claimed
    h34_another_key_with_the_same_body_is_a_new_run
}

async fn h30_another_body_is_a_mismatch_and_the_original_still_replays(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::json("/status/201", r#"{"amount":100}"#).key("k");
    let first = front.send(&ask).await;
    first.ran(201);
    for other in [r#"{"amount":101}"#, "{}", ""] {
        let problem = front.send(&ask.clone().body(other)).await.refused(422, "mismatch");
        assert_eq!(problem["title"], "Idempotency-Key is already used");
        front.send(&ask).await.replays(&first);
    }
    assert_eq!(front.service.count(), 1);
}

async fn h31_another_method_path_or_query_is_a_mismatch(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/charges?a=1").key("k");
    let first = front.send(&ask).await;
    first.ran(201);
    front.send(&ask.clone().method("PATCH")).await.refused(422, "mismatch");
    for path in
        ["/refunds?a=1", "/charges", "/charges?a=2", "/charges?a=1&b=2", "/charges/?a=1", "/Charges?a=1"]
    {
        front.send(&ask.clone().to(path)).await.refused(422, "mismatch");
    }
    front.send(&ask).await.replays(&first);
    assert_eq!(front.service.count(), 1);
}

async fn h31_keys_that_reach_over_a_route_are_separate_elsewhere(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("scope = \"route\"")).await;
    let ask = Request::post("/charges").key("k");
    let elsewhere = [ask.clone().to("/refunds"), ask.clone().to("/charges?a=2"), ask.clone().method("PATCH")];
    let first = front.send(&ask).await;
    first.ran(201);
    for other in &elsewhere {
        let first = front.send(other).await;
        first.ran(201);
        front.send(other).await.replays(&first);
    }
    front.send(&ask).await.replays(&first);
    front.send(&ask.body("another")).await.refused(422, "mismatch");
    assert_eq!(front.service.count(), 4);
}

fn to_host(host: &str) -> Request {
    Request::post("/charges").key("k").from("ada").header("host", host)
}

async fn h31_two_tenants_by_host_name_never_share_a_key(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let one = front.send(&to_host("one.example")).await;
    assert_eq!(one.ran(201).text(), "call 1");
    let two = front.send(&to_host("two.example")).await;
    assert_eq!(two.ran(201).text(), "call 2");
    for same in ["ONE.example", "one.example.", "one.example:80", "one.example:443"] {
        front.send(&to_host(same)).await.replays(&one);
    }
    // The target's own authority, and that of HTTP/2, are the same host.
    let absolute = to_host("one.example").to("http://one.example/charges");
    front.send(&absolute).await.replays(&one);
    Multiplexed::open(front.address()).await.send(&to_host("ONE.example:443")).await.replays(&one);
    front.send(&to_host("two.example").body("another")).await.refused(422, "mismatch");
    assert_eq!(front.service.count(), 2);
}

async fn h31_a_request_without_a_host_has_keys_of_its_own(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    front.send(&to_host("one.example")).await.ran(201);
    let nameless = async || {
        let head = "POST /charges HTTP/1.0\r\nauthorization: Bearer ada\r\nidempotency-key: k\r\ncontent-length: 6\r\n\r\n";
        let mut connection = front.connect().await;
        connection.write_if_open(format!("{head}a body").as_bytes()).await;
        connection.answer_to("POST").await.expect("there is an answer")
    };
    let first = nameless().await;
    assert_eq!((first.status, first.is_replay()), (201, false), "{first:?}");
    assert!(nameless().await.is_replay());
    assert_eq!(front.service.count(), 2);
}

async fn h31_hosts_that_are_one_share_their_keys(kind: Kind) {
    let setup = Setup::new().table("key", "same_hosts = [[\"api.example\", \"www.example:8443\"]]");
    let front = Front::start(kind, setup).await;
    let first = front.send(&to_host("WWW.example:8443")).await;
    front.send(&to_host("api.example")).await.replays(first.ran(201));
    front.send(&to_host("other.example")).await.ran(201);
    let ignored = Front::start(kind, Setup::new().table("key", "hosts = \"ignored\"")).await;
    let first = ignored.send(&to_host("one.example")).await;
    ignored.send(&to_host("two.example")).await.replays(first.ran(201));
}

async fn h31_an_upgrade_runs_no_key_of_0_1_again(kind: Kind) {
    let (shelf, service) = (Shelf::plain(kind), Service::default());
    let with = |identity: &str| Setup::new().table("key", &format!("identity = \"{identity}\""));
    let before = Front::start_on(kind, &with("0.1"), &shelf, &service).await;
    let first = before.send(&to_host("one.example")).await;
    // As in 0.1: another tenant gets this answer.
    before.send(&to_host("two.example")).await.replays(first.ran(201));
    before.kill();
    let upgrade = Front::start_on(kind, &with("upgrade"), &shelf, &service).await;
    upgrade.send(&to_host("one.example")).await.replays(&first);
    let new = Request::post("/charges").key("another").from("ada").header("host", "one.example");
    let made = upgrade.send(&new).await;
    made.ran(201);
    upgrade.kill();
    let after = Front::start_on(kind, &with("full"), &shelf, &service).await;
    after.send(&new).await.replays(&made);
    assert_eq!(service.count(), 2);
}

async fn h32_a_mismatch_is_told_at_once_while_the_first_runs(kind: Kind) {
    for setup in [Setup::new(), Setup::new().rule("while_running = { wait = \"30s\" }")] {
        let front = Front::start(kind, setup).await;
        let ask = Request::post("/gate/gate").key("k");
        let running = front.send_later(&ask);
        front.service.until_called(1).await;
        front.send(&ask.clone().body("another")).await.refused(422, "mismatch");
        front.service.open("gate");
        let first = running.await.expect("ends");
        front.send(&ask).await.replays(first.ran(201));
        assert_eq!(front.service.count(), 1);
    }
}

/// Whether a retry with the other body is taken for the same request; the content type is that of both.
async fn are_same(front: &Front, kind: &str, one: &[u8], other: &[u8]) -> bool {
    let key = format!("k-{}", front.service.count());
    let ask = |body: &[u8]| Request::post("/status/201").header("content-type", kind).key(&key).body(body);
    let first = front.send(&ask(one)).await;
    first.ran(201);
    let second = front.send(&ask(other)).await;
    if second.status == 422 {
        second.refused(422, "mismatch");
        return false;
    }
    second.replays(&first);
    true
}

async fn h33_json_bodies_that_mean_the_same_are_the_same(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let pairs = [
        (r#"{"a":1,"b":[1,2]}"#, "{ \"b\" : [1, 2],\r\n\t\"a\" : 1 }"),
        (r#"{"a":1.0}"#, r#"{"a":1}"#),
        (r#"{"a":1e2}"#, r#"{"a":100}"#),
        (r#"{"a":-0}"#, r#"{"a":0}"#),
        (r#"{"caf\u00e9":"\/"}"#, "{\"caf\u{e9}\":\"/\"}"),
        (r#"{"o":{"z":1,"a":{"y":1,"b":2}}}"#, r#"{"o":{"a":{"b":2,"y":1},"z":1}}"#),
        ("9007199254740992", "9007199254740992.0"),
    ];
    for (one, other) in pairs {
        for kind in ["application/json", "application/vnd.api+json; charset=utf-8", "Application/JSON"] {
            assert!(
                are_same(&front, kind, one.as_bytes(), other.as_bytes()).await,
                "{kind}: {one} and {other}"
            );
        }
    }
}

async fn h33_json_bodies_that_mean_something_else_are_a_mismatch(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let pairs = [
        (r#"{"a":null}"#, "{}"),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
        (r#"{"a":"1"}"#, r#"{"a":1}"#),
        (r#"{"a":true}"#, r#"{"a":1}"#),
        // Neighbours that a double would merge.
        (r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#),
        (r#"{"a":0.12345678901234567890}"#, r#"{"a":0.12345678901234567891}"#),
        // Duplicate members: compared as bytes, whichever of them a parser would take.
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"a":1,"a":2}"#, r#"{"a": 1,"a":2}"#),
        // What does not parse.
        (r#"{"a":1"#, r#"{"a": 1"#),
        ("", "null"),
        ("{}{}", "{} {}"),
    ];
    for (one, other) in pairs {
        assert!(
            !are_same(&front, "application/json", one.as_bytes(), other.as_bytes()).await,
            "{one} and {other}"
        );
        // Control: it is no mismatch with itself.
        assert!(are_same(&front, "application/json", one.as_bytes(), one.as_bytes()).await, "{one}");
    }
}

async fn h33_bodies_of_other_types_are_compared_byte_for_byte(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for kind in ["text/plain", "application/octet-stream", "application/jsonlines", "text/json-not"] {
        assert!(!are_same(&front, kind, b"{\"a\":1}", b"{ \"a\":1}").await, "{kind}");
        assert!(are_same(&front, kind, b"\x00\xff{", b"\x00\xff{").await, "{kind}");
    }
    assert!(!are_same(&front, "application/octet-stream", b"\x00", b"").await);
}

async fn h33_the_media_type_counts_without_its_parameters(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = |kind: &str| Request::post("/status/201").header("content-type", kind).key("k").body("{}");
    let first = front.send(&ask("application/json")).await;
    first.ran(201);
    for same in ["application/json; charset=utf-8", "APPLICATION/JSON;a=b", "application/json ; x=1"] {
        front.send(&ask(same)).await.replays(&first);
    }
    for other in ["text/plain", "application/vnd.api+json", ""] {
        front.send(&ask(other)).await.refused(422, "mismatch");
    }
    front.send(&Request::post("/status/201").key("k").body("{}")).await.refused(422, "mismatch");
}

async fn h33_fields_can_be_left_out(kind: Kind) {
    let setup = Setup::new()
        .route("/status/{n}", "fields_left_out = [\"$.client_time\", \"$.meta.trace\", \"$.id\"]");
    let front = Front::start(kind, setup).await;
    let same = [
        (r#"{"a":1,"client_time":5}"#, r#"{"a":1,"client_time":6}"#),
        (r#"{"a":1,"client_time":5}"#, r#"{"a":1}"#),
        (r#"{"meta":{"trace":"x","kept":1}}"#, r#"{"meta":{"trace":"y","kept":1}}"#),
        (r#"{"jsonrpc":"2.0","method":"pay","id":1}"#, r#"{"jsonrpc":"2.0","method":"pay","id":"two"}"#),
    ];
    for (one, other) in same {
        assert!(
            are_same(&front, "application/json", one.as_bytes(), other.as_bytes()).await,
            "{one} and {other}"
        );
    }
    let different = [
        (r#"{"a":1,"client_time":5}"#, r#"{"a":2,"client_time":5}"#),
        (r#"{"b":{"client_time":5}}"#, r#"{"b":{"client_time":6}}"#),
        (r#"{"meta":{"trace":"x","kept":1}}"#, r#"{"meta":{"trace":"x","kept":2}}"#),
    ];
    for (one, other) in different {
        assert!(
            !are_same(&front, "application/json", one.as_bytes(), other.as_bytes()).await,
            "{one} and {other}"
        );
    }
}

async fn h33_the_whole_body_counts(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let body = pattern(1 << 20);
    for at in [0, 65_536, body.len() - 1] {
        let mut other = body.clone();
        other[at] ^= 1;
        assert!(
            !are_same(&front, "application/octet-stream", &body, &other).await,
            "byte {at} does not count"
        );
    }
    assert!(are_same(&front, "application/octet-stream", &body, &body).await);
}

async fn h33_a_covered_body_over_the_bound_is_refused_and_nothing_is_claimed(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let fits = Request::post("/status/201").key("k").body(vec![7; 1 << 20]);
    let over = fits.clone().body(vec![7; (1 << 20) + 1]);
    front.send(&over).await.refused(413, "body_too_large");
    // Also if it does not say beforehand how long it is.
    let mut connection = front.connect().await;
    let chunked = Request::post("/status/201").key("k").header("transfer-encoding", "chunked").without_body();
    connection.write_if_open(&chunked.head()).await;
    connection
        .write_if_open(&[b"180000\r\n".as_slice(), &vec![7; 0x18_0000], b"\r\n0\r\n\r\n"].concat())
        .await;
    connection.answer_to("POST").await.expect("there is an answer").refused(413, "body_too_large");
    assert_eq!(front.service.count(), 0);
    // Nothing was claimed: the same key is free for what fits.
    front.send(&fits).await.ran(201);
    assert_eq!(front.service.last().body.len(), 1 << 20);
}

async fn h34_another_key_with_the_same_body_is_a_new_run(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let mut bodies = Vec::new();
    for key in ["one", "two", "\"three\"", "One"] {
        let answer = front.send(&Request::json("/status/201", "{}").key(key)).await;
        bodies.push(answer.ran(201).text().to_owned());
    }
    assert_eq!(bodies, ["call 1", "call 2", "call 3", "call 4"]);
}
