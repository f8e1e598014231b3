//! H63 and H64: what is left on a connection, and what a proxy lets through.

use std::time::Duration;
use test_http::{Answer, Client, Request, until};

use super::front::{Front, Kind};
use super::responses::ONE_HOP;
use super::rules::rules;
use super::setup::Setup;

rules! {
    h63_an_answered_request_leaves_no_bytes_for_the_next
    h63_a_body_over_the_bound_leaves_no_bytes_for_the_next
    h63_a_body_that_never_ends_does_not_keep_its_refusal_back
    h64_hop_by_hop_headers_go_one_hop
    h64_both_a_length_and_chunks_end_the_connection
    h64_a_request_that_does_not_come_to_its_end_runs_nothing
    h64_a_head_that_does_not_come_is_not_waited_for
    h64_the_service_is_the_same_whatever_the_request_says
    h64_one_that_hangs_leaves_room_for_others
    h64_a_client_that_was_killed_leaves_its_place_to_others
    h64_an_upgrade_passes_where_nothing_is_covered
}

/// A body that would be requests if it were read as such.
fn smuggled(bytes: usize) -> Vec<u8> {
    let request = b"POST /smuggled HTTP/1.1\r\nhost: service.test\r\ncontent-length: 0\r\n\r\n";
    request.iter().copied().cycle().take(bytes).collect()
}

/// Sends a request that is refused, and one after it without waiting. The second is answered as what it is, or not at all.
async fn followed(front: &Front, ask: &Request) -> Answer {
    let mut connection = front.connect().await;
    let (first, next) = (ask.bytes(), Request::get("/after").bytes());
    connection.write_if_open(&[first, next].concat()).await;
    let answer = connection.answer_to("POST").await.expect("there is an answer");
    if let Some(next) = connection.answer_to("GET").await {
        assert_eq!(next.ran(201).status, 201);
        assert_eq!(front.service.last().uri.path(), "/after");
    }
    assert!(!was_smuggled(front), "{ask:?} was taken apart");
    answer
}

fn was_smuggled(front: &Front) -> bool {
    front.service.calls().iter().any(|call| call.uri.path() == "/smuggled")
}

async fn h63_an_answered_request_leaves_no_bytes_for_the_next(kind: Kind) {
    let front = Front::start(kind, Setup::new().route("/required", "key = \"required\"")).await;
    let body = smuggled(700_000);
    let kept = Request::post("/status/201").key("kept").body(body.clone());
    let first = front.send(&kept).await;
    followed(&front, &kept).await.replays(first.ran(201));
    let mut other = body.clone();
    other.push(b'x');
    followed(&front, &kept.clone().body(other)).await.refused(422, "mismatch");
    followed(&front, &Request::post("/status/201").key("a b").body(body.clone()))
        .await
        .refused(400, "key_malformed");
    followed(&front, &Request::post("/required").body(body.clone())).await.refused(400, "key_missing");
    let running = front.send_later(&Request::post("/gate/gate").key("running").body(body.clone()));
    until("the run", async || (front.service.count_of("running") == 1).then_some(())).await;
    followed(&front, &Request::post("/gate/gate").key("running").body(body)).await.refused(409, "in_flight");
    front.service.open("gate");
    running.await.expect("ends").ran(201);
    // Control: a connection from which these bytes are read as requests is noticed.
    front.connect().await.send(&Request::post("/smuggled").body("")).await.ran(201);
    assert!(was_smuggled(&front));
}

async fn h63_a_body_over_the_bound_leaves_no_bytes_for_the_next(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("request_bytes_max = 10000")).await;
    let over = Request::post("/status/201").key("k").body(smuggled(3 << 20));
    followed(&front, &over).await.refused(413, "body_too_large");
    let malformed = Request::post("/status/201").key("a b").body(smuggled(3 << 20));
    followed(&front, &malformed).await.refused(400, "key_malformed");
}

async fn h63_a_body_that_never_ends_does_not_keep_its_refusal_back(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let mut connection = front.connect().await;
    let ask = Request::post("/status/201").key("a b").header("content-length", "1000").without_body();
    connection.write_if_open(&ask.head()).await;
    connection.write_if_open(b"only so much").await;
    let answer = connection.answer_to("POST").await.expect("there is an answer");
    answer.refused(400, "key_malformed");
    assert!(
        connection.is_closed_within(Duration::from_secs(10)).await,
        "what comes next would be taken for its body"
    );
}

/// A proxy takes them off both ways; under the layer they are the server's, and are not replayed.
async fn h64_hop_by_hop_headers_go_one_hop(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/hop").key("k").header("connection", "x-mine, keep-alive").header("x-mine", "1");
    let ask = ask
        .header("keep-alive", "timeout=9")
        .header("te", "trailers, deflate;q=0.5")
        .header("proxy-authorization", "Basic eA==");
    let ask = ask.header("proxy-connection", "keep-alive").header("x-kept", "1");
    let first = front.send(&ask).await;
    first.ran(201);
    let call = front.service.last();
    assert_eq!(call.header("x-kept"), Some("1"));
    if kind == Kind::Proxy {
        for name in ["x-mine", "keep-alive", "proxy-authorization", "proxy-connection"] {
            assert_eq!(call.header(name), None, "{name} went through");
        }
        // On its own hop a proxy may take trailers; what its client can do is nobody's business there.
        assert!(matches!(call.header("te"), None | Some("trailers")), "{call:?}");
        assert!(!call.header("connection").unwrap_or("").contains("x-mine"));
    }
    let retry = front.send(&ask).await;
    retry.replays(&first);
    let answers = if kind == Kind::Proxy { vec![&first, &retry] } else { vec![&retry] };
    for answer in answers {
        for (name, value) in ONE_HOP {
            assert!(!answer.all(name).contains(&value), "{name} went through: {answer:?}");
        }
    }
}

async fn h64_both_a_length_and_chunks_end_the_connection(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for key in ["", "idempotency-key: k\r\n"] {
        let head = format!(
            "POST /echo HTTP/1.1\r\nhost: service.test\r\n{key}content-length: 6\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        let smuggled = "GET /smuggled HTTP/1.1\r\nhost: service.test\r\n\r\n";
        let mut connection = front.connect().await;
        connection.write_if_open(format!("{head}0\r\n\r\n{smuggled}").as_bytes()).await;
        let answer = connection.answer_to("POST").await.expect("there is an answer");
        if answer.status != 400 {
            assert_eq!(answer.ran(200).text(), "", "it was read by its chunks");
        }
        assert!(
            connection.is_closed_within(Duration::from_secs(10)).await,
            "the connection is used on: {answer:?}"
        );
        assert!(!was_smuggled(&front), "{key}");
    }
}

async fn h64_a_request_that_does_not_come_to_its_end_runs_nothing(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("timeouts", "body_idle = \"300ms\"")).await;
    let ask = Request::post("/status/201").key("k").header("content-length", "10").without_body();
    // It breaks off.
    let mut connection = front.connect().await;
    connection.write_if_open(&ask.head()).await;
    connection.write_if_open(b"half").await;
    connection.half_close().await;
    if let Some(answer) = connection.answer_to("POST").await {
        answer.refused(400, "body_incomplete");
    }
    if kind == Kind::Proxy {
        // It stops coming.
        let mut connection = front.connect().await;
        connection.write_if_open(&ask.head()).await;
        connection.write_if_open(b"half").await;
        if let Some(answer) = connection.answer_to("POST").await {
            assert!(matches!(answer.code().as_deref(), Some("body_incomplete")), "{answer:?}");
        }
        assert!(connection.is_closed_within(Duration::from_secs(10)).await);
    }
    assert_eq!(front.service.count(), 0);
    front.send(&Request::post("/status/201").key("k").body("0123456789")).await.ran(201);
}

/// A proxy gives up on it. Under the layer that is the server's to do; here it keeps nobody else waiting.
async fn h64_a_head_that_does_not_come_is_not_waited_for(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("timeouts", "head = \"300ms\"")).await;
    let mut slow = Vec::new();
    for _ in 0..10 {
        let mut connection: Client = front.connect().await;
        connection.write_if_open(b"POST /status/201 HTTP/1.1\r\nhost: serv").await;
        slow.push(connection);
    }
    front.send(&Request::post("/status/201").key("k")).await.ran(201);
    if kind == Kind::Proxy {
        for connection in &mut slow {
            // With a word, or without one.
            let _refusal = connection.answer_to("POST").await;
            assert!(connection.is_closed_within(Duration::from_secs(10)).await);
        }
    }
    assert_eq!(front.service.count(), 1);
}

async fn h64_the_service_is_the_same_whatever_the_request_says(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for target in ["http://127.0.0.1:1/status/201", "http://elsewhere.test/status/201"] {
        let answer = front.send(&Request::post(target).header("x-forwarded-host", "elsewhere.test")).await;
        // Refused, or served by the service that is there; never sent elsewhere.
        if answer.status != 400 {
            answer.ran(201);
            assert_eq!(front.service.last().uri.path(), "/status/201");
        }
    }
    let mut connection = front.connect().await;
    connection.write_if_open(b"GET /status/200 HTTP/1.1\r\nhost: elsewhere.test:1\r\n\r\n").await;
    connection.answer_to("GET").await.expect("there is an answer").ran(200);
}

async fn h64_one_that_hangs_leaves_room_for_others(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("bounds", "in_flight_max = 2")).await;
    let hanging: Vec<_> =
        ["a", "b"].into_iter().map(|key| front.send_later(&Request::post("/gate/gate").key(key))).collect();
    front.service.until_called(2).await;
    let third = front.send(&Request::post("/status/201").key("c")).await;
    match kind {
        Kind::Layer => drop(third.ran(201).clone()),
        // At its bound a proxy says so at once, and nothing runs.
        Kind::Proxy => {
            third.refused(503, "overloaded");
            assert!(third.retry_after() >= 1, "{third:?}");
            assert_eq!(front.service.count(), 2);
        }
    }
    front.service.open("gate");
    for hanging in hanging {
        hanging.await.expect("ends").ran(201);
    }
    until("room", async || {
        (front.send(&Request::post("/status/201").key("c")).await.status == 201).then_some(())
    })
    .await;
    assert_eq!(front.service.count_of("c"), 1);
}

async fn h64_a_client_that_was_killed_leaves_its_place_to_others(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("bounds", "in_flight_max = 1")).await;
    let mut connection = front.connect().await;
    connection.write_if_open(&Request::post("/gate/gate").bytes()).await;
    front.service.until_called(1).await;
    connection.reset();
    // Without a key, nobody wants to know any more what comes of it.
    until("the place", async || (front.send(&Request::get("/status/200")).await.status == 200).then_some(()))
        .await;
    assert_eq!(front.service.cut_off(), 1);
}

async fn h64_an_upgrade_passes_where_nothing_is_covered(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::get("/upgrade").key("k").header("connection", "Upgrade").header("upgrade", "echo");
    for _ in 0..2 {
        let mut connection = front.connect().await;
        connection.write_if_open(&ask.bytes()).await;
        let head = connection.head().await.expect("there is an answer");
        assert_eq!((head.status, head.header("upgrade")), (101, Some("echo")));
        for words in [b"not HTTP any more".as_slice(), b"\x00\xff\r\n\r\n"] {
            connection.write_if_open(words).await;
            assert_eq!(connection.up_to(words).await.as_deref(), Some(words));
        }
    }
}
