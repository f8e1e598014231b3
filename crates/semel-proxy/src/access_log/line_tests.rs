//! What a line of the access log says.

use semel_http::DecisionKind;

use super::*;

fn line(status: Option<u16>, decided: Option<Decided>, said: Said, is_whole: bool) -> (String, Value) {
    let request = Request::get(format!("/{}?secret", "p".repeat(2_000))).body(()).expect("is a request");
    let peer = "192.0.2.1:4711".parse().expect("is an address");
    let mut entry = Entry::new(Arc::new(Observed::new(None)), &request, peer, None);
    if let Some(status) = status {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(status).expect("is a status");
        response.extensions_mut().insert(said);
        if let Some(decided) = decided {
            response.extensions_mut().insert(decided);
        }
        entry.answered(&response);
        if is_whole {
            entry.ended();
        }
    }
    let now = Timestamp::from_micros(0);
    let text = String::from_utf8(Form::Text.line(&entry, now)).expect("is text");
    (text, serde_json::from_slice(&Form::Json.line(&entry, now)).expect("is JSON"))
}

#[test]
fn a_line_says_who_decided_why_and_whether_all_of_the_answer_went_out() {
    let decided = |decision, code| Some(Decided { decision, code, key: None });
    let nothing = Said::default();
    let unreachable = Said { code: Some(Code::UpstreamUnreachable), upstream_took: None };
    for (status, about, said, is_whole, decision, code) in [
        (Some(200), None, nothing, true, "pass", None),
        (Some(200), None, nothing, false, "pass", None),
        (Some(502), None, unreachable, true, "refused", Some("upstream_unreachable")),
        (Some(201), decided(DecisionKind::Run, None), nothing, true, "run", None),
        (Some(502), decided(DecisionKind::Run, None), unreachable, true, "run", Some("upstream_unreachable")),
        (Some(201), decided(DecisionKind::Replay, None), nothing, false, "replay", None),
        (
            Some(409),
            decided(DecisionKind::Busy, Some(Code::InFlight)),
            nothing,
            true,
            "busy",
            Some("in_flight"),
        ),
        (None, None, nothing, false, "gone", None),
    ] {
        let (text, json) = line(status, about, said, is_whole);
        assert_eq!(json["decision"], decision, "{text}");
        assert_eq!(json["code"].as_str(), code, "{text}");
        assert_eq!(json["whole"], is_whole, "{text}");
        assert_eq!(json["status"].as_u64(), status.map(u64::from), "{text}");
        assert_eq!(text.contains(" broken-off\n"), !is_whole, "{text}");
        let shown = status.map_or("-".to_owned(), |status| status.to_string());
        let words = [Some(decision), code].into_iter().flatten().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&format!(" {shown} {words} ")), "{text}");
        assert_eq!(json["path"].as_str().map(str::len), Some(PATH_BYTES_MAX));
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn every_decision_has_a_counter() {
    let kinds = [
        DecisionKind::Run,
        DecisionKind::Replay,
        DecisionKind::Busy,
        DecisionKind::Mismatch,
        DecisionKind::Held,
        DecisionKind::Unprotected,
        DecisionKind::Refused,
    ];
    for kind in kinds {
        assert!(DECISIONS.contains(&kind.as_str()), "{kind:?}");
    }
    assert!(DECISIONS.contains(&"pass") && DECISIONS.contains(&"gone"));
}

#[test]
fn lines_that_a_slow_reader_leaves_no_room_for_are_dropped_whole() {
    let waiting = Arc::new(Waiting::default());
    let log = Log { form: Form::Text, waiting: Arc::clone(&waiting), thread: Mutex::new(None) };
    let line = [b'x'; 1_000];
    for _ in 0..WAITING_BYTES_MAX / line.len() + 10 {
        log.add(&line);
    }
    let length = waiting.lines().bytes.len();
    assert!(length <= WAITING_BYTES_MAX && length.is_multiple_of(line.len()), "{length}");
    let mut gathered = Vec::new();
    assert!(!waiting.gather(&mut gathered), "it goes on");
    assert_eq!((gathered.len(), waiting.lines().bytes.len()), (length, 0));
    log.add(b"last\n");
    log.say_ended();
    gathered.clear();
    assert!(waiting.gather(&mut gathered), "it has ended");
    assert_eq!(gathered, b"last\n");
}
