//! What an operator does is written down before it is done.

use semel::record::StateKind;
use semel::{ErrorKind, Key, OperatorAnswer};
use semel_server::access::Caller;
use semel_server::operator_actions;
use semel_server::serve::{Server, ServerSettings};
use serde_json::Value;
use tempfile::TempDir;

use super::started::{claim, start};

/// A server that writes actions down, with one record that runs.
async fn with_one_running() -> (TempDir, Server, Key) {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let audit = Some(folder.path().join("audit.jsonl"));
    let server = start(ServerSettings { audit, ..ServerSettings::in_memory() }).await;
    assert_eq!(claim(server.listening(), "", "a").await.status, 200);
    (folder, server, Key::new("charge", "a").expect("is a key"))
}

async fn release(server: &Server, key: &Key) -> semel::Result<OperatorAnswer> {
    let record = server.served().semel.get(key).await?.expect("is there");
    operator_actions::release(
        server.served(),
        &Caller::local(),
        &std::sync::Arc::new(record),
        "it hangs",
        None,
    )
    .await
}

async fn state(server: &Server, key: &Key) -> StateKind {
    server.served().semel.get(key).await.expect("is read").expect("is there").state.kind()
}

#[tokio::test]
async fn an_action_leaves_a_line_before_and_a_line_after() {
    let (folder, server, key) = with_one_running().await;
    assert_eq!(release(&server, &key).await.expect("is done"), OperatorAnswer::Released);
    let text = std::fs::read_to_string(folder.path().join("audit.jsonl")).expect("is written");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    let results: Vec<_> = lines.iter().map(|line| line["result"].as_str().expect("is a word")).collect();
    assert_eq!(results, ["asked", "done"], "{text}");
    assert!(
        lines.iter().all(|line| line["id"] == key.id().to_string() && line["caller"] == "local"),
        "{text}"
    );
}

#[tokio::test]
async fn an_action_that_cannot_be_written_down_is_not_done() {
    let (folder, server, key) = with_one_running().await;
    let path = folder.path().join("audit.jsonl");
    std::fs::remove_file(&path).expect("is removed");
    std::fs::create_dir(&path).expect("is in the way");
    let error = release(&server, &key).await.expect_err("cannot be written down");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(state(&server, &key).await, StateKind::Running, "nothing was done");
    std::fs::remove_dir(&path).expect("is removed");
    assert_eq!(release(&server, &key).await.expect("is done"), OperatorAnswer::Released);
    assert_eq!(state(&server, &key).await, StateKind::Released);
}
