//! H31 without a framework: the target and the host that a key belongs to.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use semel_http::{Hosts, KeyIdentity, OriginalTarget, Settings};

use crate::world::{App, Told, World, answer, send};

fn request(target: &str, host: &str) -> Request<Full<Bytes>> {
    let request = Request::post(target).header("idempotency-key", "k").header("authorization", "Bearer ada");
    request.header("host", host).body(Full::new(Bytes::from_static(b"body"))).unwrap()
}

async fn sent(app: &App, target: &str, host: &str) -> Told {
    send(app, request(target, host)).await
}

fn app(world: &World, settings: Settings) -> App {
    world.app(&world.layer(settings), |_| async { answer(201, "made") })
}

fn separate() -> Settings {
    Settings { hosts: Hosts::separate(), ..Settings::default() }
}

#[tokio::test]
async fn h31_a_framework_says_which_target_the_client_sent() {
    let world = World::new();
    let app = app(&world, Settings::default());
    let stripped = |original: &'static str| {
        let mut request = request("/pay", "h");
        request.extensions_mut().insert(OriginalTarget(original.parse().unwrap()));
        request
    };
    assert_eq!(send(&app, stripped("/a/pay")).await.status, 201);
    assert_eq!(send(&app, stripped("/b/pay")).await.code(), "mismatch");
    assert!(send(&app, stripped("/a/pay")).await.is_replay());
    // Control: without the extension the layer knows no other path than its own.
    assert_eq!(sent(&app, "/pay", "h").await.code(), "mismatch");
    assert_eq!(world.calls(), 1);
}

#[tokio::test]
async fn h31_hosts_are_separate_where_the_settings_say_so_and_one_inside_a_service() {
    let world = World::new();
    let apart = app(&world, separate());
    assert!(!sent(&apart, "/pay", "a.example").await.is_replay());
    assert!(!sent(&apart, "/pay", "b.example").await.is_replay());
    assert!(sent(&apart, "/pay", "A.example:443").await.is_replay());
    // HTTP/2 says it in the target.
    assert!(sent(&apart, "https://b.example/pay", "").await.is_replay());
    assert_eq!(world.calls(), 2);
    let one = app(&world, Settings::default());
    assert!(!sent(&one, "/pay", "a.example").await.is_replay());
    assert!(sent(&one, "/pay", "10.0.0.7:8080").await.is_replay());
    assert_eq!(world.calls(), 3);
}

#[tokio::test]
async fn h31_an_upgrade_finds_keys_that_were_stored_without_a_host() {
    let world = World::new();
    let before = app(&world, Settings { key_identity: KeyIdentity::V0_1, ..separate() });
    assert!(!sent(&before, "/pay", "a.example").await.is_replay());
    assert!(sent(&before, "/pay", "b.example").await.is_replay(), "as in 0.1");
    let upgrade = app(&world, Settings { key_identity: KeyIdentity::Upgrade, ..separate() });
    assert!(sent(&upgrade, "/pay", "a.example").await.is_replay());
    assert_eq!(sent(&upgrade, "/pay?x", "a.example").await.code(), "mismatch");
    assert_eq!(world.calls(), 1);
    // Control: without it, the key runs again.
    assert!(!sent(&app(&world, separate()), "/pay", "a.example").await.is_replay());
}
