//! The store of a server, for tools elsewhere: records exactly as they are kept, and blank where a role may not look.

use http::StatusCode;
use semel::record::{PermitId, Record, State};
use semel::{Claim, Decision, Fingerprint, Key, Outcome, RecordId};
use semel_http::{HttpRecord, Reply};
use semel_ops::served_store::{LoadedRecords, ScannedRecords};
use semel_stream::{Pipeline, Position};
use serde_json::json;

use super::server::{Server, memory, tokens};

const SECRET: &str = "known to operators alone";

fn key(operation: &str, name: &str) -> Key {
    Key::scoped(["acme"], operation, name).expect("is a key")
}

/// A done record, one of an HTTP request, one that runs with a step, and an offset.
async fn server() -> Server {
    let server = Server::on(memory().await, tokens(&["", "acme", "other"])).await;
    let semel = &server.served.semel;
    let claim = |key: &Key| {
        Claim::new(key).fingerprint(Fingerprint::of(SECRET).expect("is JSON")).label("POST /charges")
    };
    let run = async |key: &Key| {
        let decision = semel.claim(claim(key)).await.expect("is answered");
        let Decision::Run(permit) = decision else { panic!("was not told to run but {}", decision.as_str()) };
        permit
    };
    run(&key("charge", "done")).await.complete(Outcome::success(SECRET)).await.expect("is completed");
    let reply =
        Reply::json(StatusCode::CREATED, &SECRET).and_then(|reply| reply.header("location", "/known"));
    run(&key("http", "http")).await.complete(reply.expect("is one").outcome()).await.expect("is completed");
    let running = run(&key("charge", "running")).await;
    let step = running.step("reserve", || async { Ok::<_, std::io::Error>(SECRET.to_owned()) }).await;
    assert!(step.is_ok(), "a step is stored");
    let pipeline = Pipeline::builder(semel, "orders").scope(["acme"]).build().expect("is fine");
    let reader = pipeline.take("events").await.expect("is taken");
    reader.commit(Position::new(41), None).await.expect("is committed");
    server
}

async fn scanned(server: &Server, token: &str, query: &str) -> Vec<Record> {
    let answered = server.with_token(token).look(&format!("/v1/store/scan{query}")).await;
    let page: ScannedRecords = serde_json::from_value(answered).expect("is a page");
    let page = page.page().expect("is readable").value;
    page.records.iter().map(|record| Record::clone(record)).collect()
}

async fn loaded(server: &Server, token: &str, id: RecordId) -> Option<Record> {
    let answered = server.with_token(token).look(&format!("/v1/store/load?id={id}")).await;
    let mut loaded: LoadedRecords = serde_json::from_value(answered).expect("are records");
    assert_eq!(loaded.records.len(), 1);
    let found = loaded.records.remove(0).loaded().expect("is readable");
    found.map(|record| Record::clone(&record))
}

/// Whether anything that only operators may see is in the bytes of a record.
fn is_secret_in(record: &Record) -> bool {
    let bytes = semel::codec::encode(record).expect("is encoded");
    let fingerprint = Fingerprint::of(SECRET).expect("is JSON");
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    has(SECRET.as_bytes())
        || has(b"/known")
        || has(fingerprint.as_bytes())
        || record.state.grant().permit_id != PermitId::new(0)
}

#[tokio::test]
async fn an_operator_gets_records_exactly_as_they_are_kept() {
    let server = server().await;
    for record in scanned(&server, "semel_operate_acme", "").await {
        let kept = server.served.store.load(vec![record.key.id()]).await.expect("answers").record();
        let kept = kept.expect("is readable").expect("is there");
        assert_eq!(format!("{record:?}"), format!("{kept:?}"));
        assert_eq!(semel::codec::encode(&record).unwrap(), semel::codec::encode(&kept).unwrap());
        let alone = loaded(&server, "semel_operate_", record.key.id()).await.expect("is there");
        assert_eq!(format!("{alone:?}"), format!("{kept:?}"));
        assert!(is_secret_in(&record), "the control: {record:?}");
    }
}

#[tokio::test]
async fn a_reader_gets_them_blank_and_of_the_same_size() {
    let server = server().await;
    let (whole, blank) =
        (scanned(&server, "semel_operate_", "").await, scanned(&server, "semel_read_", "").await);
    assert_eq!((whole.len(), blank.len()), (4, 4));
    for (whole, blank) in whole.iter().zip(&blank) {
        assert!(!is_secret_in(blank), "{blank:?}");
        assert_eq!((&whole.key, whole.version, whole.attempt), (&blank.key, blank.version, blank.attempt));
        assert_eq!(whole.fingerprint.is_some(), blank.fingerprint.is_some());
        let status = |record| HttpRecord::of(record).and_then(|http| http.response()?.ok()?.status());
        assert_eq!(status(whole), status(blank));
        match (&whole.state, &blank.state) {
            (State::Running(whole), State::Running(blank)) => {
                assert_eq!(whole.steps[0].value.len(), blank.steps[0].value.len());
            }
            (State::Done(whole), State::Done(blank)) if whole.outcome.bytes() == SECRET => {
                assert_eq!(blank.outcome.bytes(), &vec![0; SECRET.len()]);
            }
            (State::Done(_), State::Done(_)) => {}
            (whole, blank) => panic!("{whole:?} became {blank:?}"),
        }
        assert_eq!(semel::machine::offset::read(whole), semel::machine::offset::read(blank));
    }
    let done = key("charge", "done").id();
    assert!(!is_secret_in(&loaded(&server, "semel_read_acme", done).await.expect("is there")));
}

#[tokio::test]
async fn a_token_with_a_scope_reads_no_record_of_another() {
    let server = server().await;
    assert_eq!(scanned(&server, "semel_operate_other", "").await.len(), 0);
    assert_eq!(scanned(&server, "semel_operate_acme", "").await.len(), 4, "the control reads its own");
    let done = key("charge", "done").id();
    assert!(loaded(&server, "semel_operate_other", done).await.is_none());
    assert!(loaded(&server, "semel_operate_acme", done).await.is_some());
    let asked = server.with_token("semel_operate_other").get("/v1/store/scan?scope=acme").await;
    assert_eq!(asked.problem(), (403, "forbidden".to_owned()));
}

#[tokio::test]
async fn a_filter_is_applied_by_the_server_and_a_page_goes_on_where_the_last_one_ended() {
    let server = server().await;
    let names =
        |records: &[Record]| records.iter().map(|record| record.key.name().to_owned()).collect::<Vec<_>>();
    let token = "semel_read_";
    assert_eq!(names(&scanned(&server, token, "?state=running").await), ["running"]);
    assert_eq!(names(&scanned(&server, token, "?operation=http&scope=acme").await), ["http"]);
    assert_eq!(scanned(&server, token, "?first_seen_before_micros=1").await.len(), 0);
    let (mut seen, mut after) = (0, String::new());
    loop {
        let page = server.with_token(token).look(&format!("/v1/store/scan?limit=1{after}")).await;
        seen += page["records"].as_array().expect("is a list").len();
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
        assert!(seen < 5, "it ends");
    }
    assert_eq!(seen, 4);
}

#[tokio::test]
async fn an_answer_has_a_bound_however_much_is_asked_for() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for number in 0..32 {
        let key = key("large", &format!("n-{number}"));
        let once =
            server.served.semel.record_once(Claim::new(&key), Outcome::success(vec![7; 1 << 20])).await;
        assert!(once.is_ok(), "is recorded");
        ids.push(format!("id={}", key.id()));
    }
    let page = server.look("/v1/store/scan?limit=1000").await;
    let read = page["records"].as_array().expect("is a list").len();
    assert!(read <= 24 && page["next"].is_string(), "{read} records in one answer");
    let loaded = server.look(&format!("/v1/store/load?{}", ids.join("&"))).await;
    let read = loaded["records"].as_array().expect("is a list").len();
    assert!((1..=16).contains(&read), "{read} records in one answer");
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused() {
    let server = Server::start().await;
    let many = vec!["id=00"; 65].join("&");
    for path in [
        "/v1/store/load",
        "/v1/store/load?id=3f2a",
        &format!("/v1/store/load?{many}"),
        "/v1/store/scan?limit=0",
        "/v1/store/scan?first_seen_before_micros=x",
        "/v1/store/scan?lmit=3",
        "/v1/store?x=1",
    ] {
        assert_eq!(server.get(path).await.problem(), (400, "invalid_request".to_owned()), "{path}");
    }
    for (path, body) in [
        ("/v1/store/sweep", json!({"limit": 0})),
        ("/v1/store/sweep", json!({"limit": 10_001})),
        ("/v1/offsets/move", json!({"pipeline": "p", "stream": "s", "to": "-1"})),
        ("/v1/receipts/record", json!({"pipeline": "p"})),
        ("/v1/receipts/record", json!({"pipeline": " ", "event": "e"})),
    ] {
        assert_eq!(server.post(path, body.to_string()).await.problem().0, 400, "{path} {body}");
    }
}

#[tokio::test]
async fn an_offset_is_moved_only_in_the_epoch_that_was_shown() {
    let server = Server::start().await;
    let pipeline = Pipeline::new(&server.served.semel, "orders").expect("is fine");
    pipeline.take("events").await.expect("is taken");
    let moved = |epoch: u64| json!({"scope": [], "pipeline": "orders", "stream": "events", "to": "7", "epoch": epoch});
    pipeline.take("events").await.expect("is taken by another reader");
    assert_eq!(server.decide("/v1/offsets/move", &moved(1)).await["decision"], "changed");
    assert_eq!(pipeline.offset("events").await.unwrap().unwrap().position, None);
    let answer = server.decide("/v1/offsets/move", &moved(2)).await;
    assert_eq!(answer, json!({"decision": "moved", "position": "7", "epoch": 3}));
}
