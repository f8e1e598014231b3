//! What a server says of its store, on a folder in memory: a file system that forgets breaks the promise of a file store.

use std::time::Duration;

use semel_ops::store_url::Address;
use semel_server::serve::{Server, ServerSettings};

use super::started::{claim, get, start};

/// A server on a folder in memory.
async fn on_tmpfs() -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir_in("/dev/shm").expect("Linux has a file system in memory");
    let store = Address::File(folder.path().join("store"));
    let server = start(ServerSettings { store, ..ServerSettings::in_memory() }).await;
    (folder, server)
}

/// A part of a page, once it is there: the first check is under way when the server starts.
async fn until(server: &Server, path: &str, part: &str) -> String {
    test_http::until(part, async || {
        let text = get(server.listening(), path, "").await.text().to_owned();
        text.contains(part).then_some(text)
    })
    .await
}

#[tokio::test]
async fn a_broken_setting_that_refuses_nothing_is_said_by_every_surface_and_claims_are_taken() {
    let (_folder, server) = on_tmpfs().await;
    let body = until(&server, "/readyz", "tmpfs").await;
    let said = "ready; store: file system is tmpfs: gone when the machine stops; what is acknowledged could be lost\n";
    assert_eq!(body, said);
    assert_eq!(get(server.listening(), "/readyz", "").await.status, 200);
    assert!(server.survives().contains("tmpfs"), "{}", server.survives());
    for page in ["/", "/keys", "/pipelines", "/keys/none"] {
        let html = until(&server, page, "data-test=\"store-banner\"").await;
        assert!(html.contains("tmpfs: gone when the machine stops"), "{page}: {html}");
        assert!(html.contains("a local disk that keeps what it has synced"), "{page}: {html}");
    }
    let stats = get(server.listening(), "/v1/stats", "").await;
    for part in ["\"ready\":true,\"not_ready\":null", "\"broken_settings\":[{\"setting\":\"file system\""] {
        assert!(stats.text().contains(part), "{part}: {}", stats.text());
    }
    assert_eq!(claim(server.listening(), "", "a").await.status, 200);
}

#[tokio::test]
async fn a_server_whose_store_is_fine_has_no_banner() {
    let server = start(ServerSettings::in_memory()).await;
    assert_eq!(get(server.listening(), "/readyz", "").await.text(), "ready\n");
    for page in ["/", "/keys"] {
        let html = get(server.listening(), page, "").await.text().to_owned();
        assert!(
            html.contains("id=\"store-banner\"") && !html.contains("data-test=\"store-banner\""),
            "{html}"
        );
    }
}

#[tokio::test]
async fn a_page_without_live_parts_is_not_made_live_by_the_place_of_the_banner() {
    let server = start(ServerSettings::in_memory()).await;
    let html = get(server.listening(), "/keys", "").await.text().to_owned();
    assert!(html.contains("data-live-too") && !html.contains("data-live "), "{html}");
}

#[tokio::test]
async fn settings_are_checked_every_twenty_seconds_unless_a_test_says_otherwise() {
    assert_eq!(ServerSettings::in_memory().store_check_every, Duration::from_secs(20));
}
