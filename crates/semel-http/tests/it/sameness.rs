//! Keys, callers, bodies and quotas, end to end through the layer.

use http::HeaderValue;
use semel_http::{Quotas, Settings};

use crate::world::{World, answer, charge, ruled, send};

#[tokio::test]
async fn amounts_that_a_double_would_merge_are_a_mismatch() {
    let world = World::new();
    let app = world.app(&world.layer(Settings::default()), |_| async { answer(201, "done") });
    let amounts = ["9007199254740993", "9007199254740992", "9007199254740994", "9007199254740993.0"];
    for first in amounts {
        for second in amounts {
            let key = format!("{first}-{second}");
            let body = |amount: &str| format!("{{\"amount\":{amount}}}");
            assert_eq!(send(&app, charge(&key, &body(first))).await.status, 201);
            let told = send(&app, charge(&key, &body(second))).await;
            if first == second {
                assert!(told.is_replay() && told.status == 201, "{key}");
            } else {
                assert_eq!((told.status, told.code().as_str()), (422, "mismatch"), "{key}");
            }
        }
    }
    assert_eq!(world.calls(), amounts.len() * amounts.len());
}

#[tokio::test]
async fn a_body_that_means_the_same_is_replayed_and_one_that_does_not_is_refused() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| rules.fields_left_out = vec!["$.client_time".parse().unwrap()]));
    let app = world.app(&layer, |_| async { answer(201, "done") });
    send(&app, charge("k", r#"{"amount":1,"to":"bob","client_time":1}"#)).await;
    for same in [
        r#"{"to":"bob","amount":1.0,"client_time":2}"#,
        r#" { "amount" : 1e0, "to" : "\u0062ob" } "#,
        r#"{"client_time":9007199254740993,"amount":1,"to":"bob"}"#,
    ] {
        assert!(send(&app, charge("\"k\";v=1", same)).await.is_replay(), "{same}");
    }
    for other in [
        r#"{"amount":2,"to":"bob"}"#,
        r#"{"amount":1,"to":"bob","extra":null}"#,
        r#"{"amount":"1","to":"bob"}"#,
        r#"{"amount":1,"amount":1,"to":"bob"}"#,
        "",
    ] {
        assert_eq!(send(&app, charge("k", other)).await.code(), "mismatch", "{other}");
    }
    assert_eq!(world.calls(), 1);
}

#[tokio::test]
async fn a_key_that_cannot_be_read_runs_nothing_and_is_not_repeated() {
    let world = World::new();
    let app = world.app(&world.layer(Settings::default()), |_| async { answer(201, "done") });
    for key in ["\"hunter2", "hunter2, hunter3", "hunter2;v=1", "\"hunter2\"x", "\"\"", &"hunter2".repeat(50)]
    {
        let told = send(&app, charge(key, "{}")).await;
        assert_eq!((told.status, told.code().as_str()), (400, "key_malformed"), "{key}");
        assert!(!String::from_utf8_lossy(&told.body).contains("hunter2"), "{key}");
    }
    assert_eq!(world.calls(), 0);
}

#[tokio::test]
async fn callers_with_one_key_see_nothing_of_each_other() {
    let world = World::new();
    let app = world.app(&world.layer(Settings::default()), |request| async move {
        answer(201, request.headers()["authorization"].to_str().unwrap())
    });
    for caller in ["Bearer alice", "Bearer bob", "Bearer carol"] {
        for is_replay in [false, true] {
            let mut request = charge("k", &format!("{{\"of\":\"{caller}\"}}"));
            request.headers_mut().insert("authorization", HeaderValue::from_str(caller).unwrap());
            let told = send(&app, request).await;
            assert_eq!((told.status, told.is_replay()), (201, is_replay), "{caller}");
            assert_eq!(told.body, caller);
        }
    }
    assert_eq!(world.calls(), 3);
    let mut nobody = charge("k", "{}");
    nobody.headers_mut().remove("authorization");
    assert_eq!(send(&app, nobody).await.code(), "caller_unknown");
}

#[tokio::test]
async fn h62_a_caller_over_its_quota_starts_nothing_new_and_may_still_retry() {
    let quotas = Quotas { records: Some(2), ..Quotas::default() };
    let world = World::new();
    let layer = world.layer(Settings { quotas: Some(quotas), ..Settings::default() });
    let app = world.app(&layer, |_| async { answer(201, "done") });
    for key in ["a", "b"] {
        assert_eq!(send(&app, charge(key, "{}")).await.status, 201);
    }
    let refused = send(&app, charge("c", "{}")).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "quota_exceeded"));
    assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    assert!(send(&app, charge("a", "{}")).await.is_replay());
    let mut other = charge("c", "{}");
    other.headers_mut().insert("authorization", HeaderValue::from_static("Bearer bob"));
    assert_eq!(send(&app, other).await.status, 201);
    assert_eq!(world.calls(), 3);
}
