//! H60 to H62: whose key it is, who may see a replay, and how much one caller may use.

use std::net::Ipv4Addr;

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::json;
use test_http::{Answer, Client, Request, until};

use super::front::{Front, Kind};
use super::rules::rules;
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;

rules! {
    h60_the_same_key_of_another_caller_is_another_key
    h60_without_authorization_the_peers_address_is_the_caller
    h60_nobody_is_anonymous_together
    h60_a_caller_that_cannot_be_told_is_refused
    h60_two_sessions_behind_one_address_are_never_one_caller
    h60_the_session_that_a_cookie_names_is_the_caller_where_the_file_says_so
    h60_credentials_that_are_not_read_are_never_taken_for_an_address
    h60_a_token_that_is_no_good_is_401_with_the_reason_in_the_log
    h60_a_jwt_that_is_only_digested_draws_one_warning
    h60_a_spoofed_forwarded_header_never_picks_a_caller
    h60_forwarded_addresses_count_from_the_right_behind_trusted_proxies
    h60_all_callers_are_one_only_if_that_was_said
    h61_authentication_goes_before_replay
    h62_new_keys_by_minute_have_a_quota_for_each_caller
    h62_records_have_a_quota_for_each_caller
    h62_bytes_have_a_quota_for_each_caller
    h62_there_is_no_quota_unless_said
}

fn charge() -> Request {
    Request::post("/status/201").key("k")
}

/// Sends from an address of this machine's own.
async fn send_from(front: &Front, from: Ipv4Addr, ask: &Request) -> Answer {
    Client::connect_from(from, front.address()).await.send(ask).await
}

const ONE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

async fn h60_the_same_key_of_another_caller_is_another_key(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ada = front.send(&charge().from("ada")).await;
    ada.ran(201);
    // Neither a replay nor a mismatch.
    let bob = front.send(&charge().from("bob").body("another body")).await;
    bob.ran(201);
    front.send(&charge().from("ada")).await.replays(&ada);
    front.send(&charge().from("bob").body("another body")).await.replays(&bob);
    assert_eq!(front.service.count(), 2);
}

async fn h60_without_authorization_the_peers_address_is_the_caller(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let one = send_from(&front, ONE, &charge()).await;
    // Another connection, and so another port, but the same address.
    send_from(&front, ONE, &charge()).await.replays(one.ran(201));
    let other = send_from(&front, OTHER, &charge()).await;
    assert_eq!(other.ran(201).text(), "call 2");
    send_from(&front, OTHER, &charge()).await.replays(&other);
    // With authorization the address does not count.
    let ada = send_from(&front, ONE, &charge().from("ada")).await;
    send_from(&front, OTHER, &charge().from("ada")).await.replays(ada.ran(201));
}

async fn h60_nobody_is_anonymous_together(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    // An empty authorization, or one that says the address, is not the same caller as none.
    let none = send_from(&front, ONE, &charge()).await;
    none.ran(201);
    for value in ["127.0.0.1", "peer:127.0.0.1", "anonymous", "Basic Og=="] {
        let answer = send_from(&front, ONE, &charge().header("authorization", value)).await;
        assert!(!answer.is_replay(), "{value}: {answer:?}");
        answer.ran(201);
    }
    // Two lines are neither the first nor the second.
    let two = charge().from("ada").from("bob");
    let both = front.send(&two).await;
    both.ran(201);
    front.send(&charge().from("ada")).await.ran(201);
    front.send(&charge().from("bob")).await.ran(201);
}

async fn h60_a_caller_that_cannot_be_told_is_refused(kind: Kind) {
    let setup = Setup::new().table("principal", "from = \"header\"\nheader = \"x-user\"");
    let front = Front::start(kind, setup).await;
    front.send(&charge()).await.refused(400, "caller_unknown");
    front.send(&charge().from("ada")).await.refused(400, "caller_unknown");
    assert_eq!(front.service.count(), 0);
    let ada = front.send(&charge().header("x-user", "ada")).await;
    front.send(&charge().header("X-User", "ada")).await.replays(ada.ran(201));
    front.send(&charge().header("x-user", "bob")).await.ran(201);
    // Without a key nobody needs to be known.
    front.send(&Request::post("/status/201")).await.ran(201);
}

/// Two people behind one load balancer, who chose the same key and body.
async fn h60_two_sessions_behind_one_address_are_never_one_caller(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for session in ["session=ada", "session=bob"] {
        let refused = front.send(&charge().header("cookie", session)).await.refused(400, "caller_unknown");
        let detail = refused["detail"].as_str().expect("there is a detail");
        assert!(detail.contains("`Authorization`") && detail.contains("from = \"cookie\""), "{detail}");
    }
    assert_eq!(front.service.count(), 0);
    assert_eq!(front.written().matches("from = \"cookie\"").count(), 1, "{}", front.written());
    // With credentials beside it, a cookie is no matter; nor is one without a key.
    front.send(&charge().from("ada").header("cookie", "session=ada")).await.ran(201);
    front.send(&Request::post("/status/201").header("cookie", "session=ada")).await.ran(201);
    // Whoever says that the address is the caller all the same is believed.
    let said = Front::start(kind, Setup::new().table("principal", "or = \"any_peer\"")).await;
    let first = said.send(&charge().header("cookie", "session=ada")).await;
    said.send(&charge().header("cookie", "session=bob")).await.replays(first.ran(201));
}

async fn h60_the_session_that_a_cookie_names_is_the_caller_where_the_file_says_so(kind: Kind) {
    let both = "or = \"cookie\"\ncookie = \"session\"";
    for lines in ["from = \"cookie\"\ncookie = \"session\"", both] {
        let front = Front::start(kind, Setup::new().table("principal", lines)).await;
        let ask = |cookies: &str| charge().header("cookie", cookies);
        let ada = front.send(&ask("session=ada; theme=dark")).await;
        ada.ran(201);
        let bob = front.send(&ask("session=bob")).await;
        assert_eq!(bob.ran(201).text(), "call 2");
        front.send(&ask("theme=light; session=ada")).await.replays(&ada);
        front.send(&ask("theme=light")).await.refused(400, "caller_unknown");
        front.send(&charge()).await.refused(400, "caller_unknown");
    }
}

async fn h60_credentials_that_are_not_read_are_never_taken_for_an_address(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for value in ["ada", "bob"] {
        let refused = front.send(&charge().header("x-api-key", value)).await.refused(400, "caller_unknown");
        let detail = refused["detail"].as_str().expect("there is a detail");
        assert!(detail.contains("header = \"x-api-key\""), "{detail}");
    }
    let by_header = Setup::new().table("principal", "from = \"header\"\nheader = \"x-user\"\nor = \"peer\"");
    let front = Front::start(kind, by_header).await;
    front.send(&charge().from("ada")).await.refused(400, "caller_unknown");
    front.send(&charge().header("x-user", "ada")).await.ran(201);
}

const SECRET: &str = "a secret of enough bytes for HS256";

fn token(caller: &str, expires: u64, secret: &str) -> String {
    let claims = json!({ "sub": caller, "exp": expires });
    encode(&Header::default(), &claims, &EncodingKey::from_secret(secret.as_bytes())).expect("is signed")
}

/// A time that no test waits for.
const FAR: u64 = 32_503_680_000;

async fn h60_a_token_that_is_no_good_is_401_with_the_reason_in_the_log(kind: Kind) {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let file = folder.path().join("secret");
    std::fs::write(&file, SECRET).expect("is written");
    let jwt = format!("from = \"jwt\"\nalgorithm = \"HS256\"\nsecret_file = \"{}\"", file.display());
    // Also where others are told apart by their address: an expired token must not make another caller.
    for lines in [jwt.clone(), format!("{jwt}\nor = \"any_peer\"")] {
        let front = Front::start(kind, Setup::new().table("principal", &lines)).await;
        front.send(&charge().from(&token("ada", FAR, SECRET))).await.ran(201);
        for (bad, reason) in [
            (token("ada", 1_000_000_000, SECRET), "it is expired"),
            (token("ada", FAR, "another secret, also long enough"), "its signature is wrong"),
            (token(" ", FAR, SECRET), "the claim that names the caller"),
            ("no.token.atall".to_owned(), "it is malformed"),
        ] {
            let refused = front.send(&charge().from(&bad)).await;
            refused.refused(401, "caller_unknown");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
            assert!(!refused.text().contains("who you are"), "{refused:?}");
            until("the reason in the log", async || front.written().contains(reason).then_some(())).await;
            assert!(!front.written().contains(&bad), "the token is in the log");
        }
        assert_eq!(front.service.count(), 1);
        // Without a key, the token is the service's to judge.
        front.send(&Request::post("/status/201").from("no.token.atall")).await.ran(201);
    }
    let front = Front::start(kind, Setup::new().table("principal", &jwt)).await;
    let missing = front.send(&charge()).await;
    missing.refused(400, "caller_unknown");
}

async fn h60_a_jwt_that_is_only_digested_draws_one_warning(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let warnings = || front.written().matches("looks like a JWT").count();
    front.send(&charge().from("sk_live_4711")).await.ran(201);
    assert_eq!(warnings(), 0);
    for name in ["ada", "bob", "eve"] {
        front.send(&charge().from(&token(name, FAR, SECRET))).await.ran(201);
    }
    until("the warning", async || (warnings() > 0).then_some(())).await;
    assert_eq!(warnings(), 1, "{}", front.written());
    assert!(front.written().contains("from = \"jwt\""), "{}", front.written());
}

const SPOOFS: [&str; 7] =
    ["x-forwarded-for", "forwarded", "x-real-ip", "via", "cf-connecting-ip", "true-client-ip", "x-client-ip"];

async fn h60_a_spoofed_forwarded_header_never_picks_a_caller(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let victim = send_from(&front, OTHER, &charge()).await;
    victim.ran(201);
    let own = send_from(&front, ONE, &charge()).await;
    own.ran(201);
    for name in SPOOFS {
        for value in ["127.0.0.2", "for=127.0.0.2", "203.0.113.9"] {
            // Neither the victim's caller nor one of its own choice: a proxy that is not trusted may speak for several.
            let spoofed = charge().header(name, value);
            send_from(&front, ONE, &spoofed).await.refused(400, "caller_unknown");
        }
    }
    // With authorization it is who it is.
    let ada = send_from(&front, ONE, &charge().from("ada")).await;
    let spoofed = charge().from("ada").header("x-forwarded-for", "127.0.0.2");
    send_from(&front, ONE, &spoofed).await.replays(ada.ran(201));
    send_from(&front, ONE, &charge()).await.replays(&own);
    assert_eq!(front.service.count(), 3);
}

async fn h60_forwarded_addresses_count_from_the_right_behind_trusted_proxies(kind: Kind) {
    let setup = Setup::new().top("trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]");
    let front = Front::start(kind, setup).await;
    let behind = |forwarded: &str| charge().header("x-forwarded-for", forwarded);
    let ada = send_from(&front, ONE, &behind("203.0.113.7")).await;
    ada.ran(201);
    // What stands left of it came from the client, and may be anything; trusted hops right of it are stepped over.
    for same in [
        "198.51.100.1, 203.0.113.7",
        "127.0.0.2,203.0.113.7",
        "x, 203.0.113.7, 10.1.2.3",
        "203.0.113.7 , 10.9.9.9",
    ] {
        send_from(&front, ONE, &behind(same)).await.replays(&ada);
    }
    let lines = charge().header("x-forwarded-for", "198.51.100.1").header("x-forwarded-for", "203.0.113.7");
    send_from(&front, ONE, &lines).await.replays(&ada);
    let others = send_from(&front, ONE, &behind("203.0.113.7, 198.51.100.1")).await;
    assert_eq!(others.ran(201).text(), "call 2");
    // Whoever is no trusted proxy is who it is, and may not speak for others.
    send_from(&front, OTHER, &charge()).await.ran(201);
    send_from(&front, OTHER, &behind("203.0.113.7")).await.refused(400, "caller_unknown");
    // A trusted proxy that does not say for whom it asks may ask for anybody.
    send_from(&front, ONE, &charge()).await.refused(400, "caller_unknown");
    assert_eq!(front.service.count(), 3);
}

async fn h60_all_callers_are_one_only_if_that_was_said(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("principal", "from = \"shared\"")).await;
    let first = send_from(&front, ONE, &charge().from("ada")).await;
    send_from(&front, OTHER, &charge().from("bob")).await.replays(first.ran(201));
}

/// In an app, authentication is before the layer, and a revoked caller is refused. Behind a proxy the service
/// authenticates: who is somebody else to it is somebody else to the proxy, and its refusal is not kept.
async fn h61_authentication_goes_before_replay(kind: Kind) {
    let front = Front::start_guarded(kind).await;
    let ask = |who: &str| Request::post("/guarded").key("k").from(who);
    let first = front.send(&ask("ada")).await;
    assert_eq!(first.ran(201).text(), "call 1 for Bearer ada");
    front.send(&ask("ada")).await.replays(&first);
    front.service.revoke("Bearer eve");
    for _ in 0..2 {
        let eve = front.send(&ask("eve")).await;
        assert_eq!((eve.status, eve.is_replay(), eve.text().contains("ada")), (401, false, false), "{eve:?}");
    }
    if kind == Kind::Layer {
        front.service.revoke("Bearer ada");
        let revoked = front.send(&ask("ada")).await;
        assert_eq!((revoked.status, revoked.is_replay()), (401, false), "{revoked:?}");
        assert!(!revoked.text().contains("ada"), "{revoked:?}");
    }
    // Nobody keeps the refusal: who gets its rights back runs.
    front.service.pardon("Bearer eve");
    assert!(front.send(&ask("eve")).await.ran(201).text().ends_with("for Bearer eve"));
}

/// Who is over a quota is told so for new keys, and for new keys only.
async fn is_over_quota(front: &Front, caller: &str, known: &Answer, known_ask: &Request) {
    let new = Request::post("/status/201").from(caller).key("one-too-many");
    let refused = front.send(&new).await;
    refused.refused(429, "quota_exceeded");
    assert!(refused.retry_after() >= 1, "{refused:?}");
    front.send(&new).await.refused(429, "quota_exceeded");
    front.send(known_ask).await.replays(known);
    front.send(&Request::post("/status/201").from(caller)).await.ran(201);
    front.send(&new.without_caller().from("somebody else")).await.ran(201);
    assert_eq!(front.service.count_of("one-too-many"), 1, "only somebody else ran");
}

async fn h62_new_keys_by_minute_have_a_quota_for_each_caller(kind: Kind) {
    let (shelf, service) = (Shelf::plain(kind), Service::default());
    let setup = Setup::new().table("quotas", "new_keys_per_minute = 3");
    let front = Front::start_on(kind, &setup, &shelf, &service).await;
    let ask = |key: &str| Request::post("/status/201").from("ada").key(key);
    let first = front.send(&ask("0")).await;
    for key in ["1", "2"] {
        front.send(&ask(key)).await.ran(201);
        front.send(&ask("0")).await.replays(&first);
    }
    is_over_quota(&front, "ada", &first, &ask("0")).await;
    // What was refused is not stored: without the quota it runs.
    front.kill();
    let front = Front::start_on(kind, &Setup::new(), &shelf, &service).await;
    front.send(&ask("one-too-many")).await.ran(201);
    front.send(&ask("0")).await.replays(&first);
}

async fn h62_records_have_a_quota_for_each_caller(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("quotas", "records = 2")).await;
    let ask = |key: &str| Request::post("/status/201").from("ada").key(key);
    let first = front.send(&ask("0")).await;
    front.send(&ask("1")).await.ran(201);
    is_over_quota(&front, "ada", &first, &ask("0")).await;
}

async fn h62_bytes_have_a_quota_for_each_caller(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("quotas", "bytes = 5000")).await;
    let ask = |key: &str| Request::post("/big/3000").from("ada").key(key);
    let first = front.send(&ask("0")).await;
    front.send(&ask("1")).await.ran(200);
    is_over_quota(&front, "ada", &first, &ask("0")).await;
}

async fn h62_there_is_no_quota_unless_said(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let mut connection = front.connect().await;
    for number in 0..200 {
        connection.send(&Request::post("/status/201").key(&number.to_string())).await.ran(201);
    }
    assert_eq!(front.service.count(), 200);
}
