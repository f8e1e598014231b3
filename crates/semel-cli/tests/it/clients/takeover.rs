//! A key that goes through three languages: Python is killed in the middle of its run, TypeScript takes over after the lease,
//! and Rust is answered with what TypeScript stored.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use semel::record::{PermitId, Version};
use semel::store::MemoryStore;
use semel::{Key, Once, Permit, PermitParts, Semel};
use serde_json::{Value, json};
use test_http::Server;

use super::programs::{Python, TypeScript};
use super::serving::serve;
use crate::binary::ran;
use crate::place::Place;

const SCOPE: &str = "acme";
const OPERATION: &str = "charge";
const NAME: &str = "order-1042";

fn request() -> Value {
    json!({ "cents": 4200 })
}

#[test]
fn a_run_that_python_died_in_is_taken_over_by_typescript_and_replayed_by_rust_over_a_folder() {
    let place = Place::file();
    let server = serve(&place);
    let stored = dies_and_is_taken_over(&server);
    // A folder is for one process, which is the server: Rust asks it, as everybody else does.
    let claim = |name: &str| {
        let claim = json!({"scope": [SCOPE], "operation": OPERATION, "name": name, "request": request()});
        server.client().call("/v1/claim", &claim).expect("is answered")
    };
    let replay = claim(NAME);
    assert_eq!((&replay["decision"], &replay["outcome"]["json"]), (&json!("replay"), &stored), "{replay}");
    let fresh = claim("order-1043");
    assert_eq!((&fresh["decision"], &fresh["attempt"]), (&json!("run"), &json!(1)), "{fresh}");
}

#[test]
fn a_run_that_python_died_in_is_taken_over_by_typescript_and_replayed_by_rust_over_postgres() {
    let place = Place::postgres();
    let stored = dies_and_is_taken_over(&serve(&place));
    // The server is gone by now: the record is in the database, for the crate as for everybody else.
    let once = |name: &'static str| {
        place.with(async |semel| {
            let key = Key::scoped([SCOPE], OPERATION, name).expect("is fine");
            let work = |permit: Permit| async move {
                Ok::<_, String>(json!({"by": "rust", "attempt": permit.attempt()}))
            };
            semel.once(&key, &request(), work).await.expect("the database answers")
        })
    };
    assert!(
        matches!(once(NAME), Once::Replayed(value) if value == stored),
        "replayed as TypeScript stored it"
    );
    let fresh = json!({"by": "rust", "attempt": 1});
    assert!(matches!(once("order-1043"), Once::Ran(value) if value == fresh), "another key runs");
}

/// Has Python die after its effect and TypeScript take over. What TypeScript stored.
fn dies_and_is_taken_over(server: &Server) -> Value {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let ledger = folder.path().join("ledger");
    let died = dies(server, &ledger);
    assert_eq!(died["attempt"], 1, "{died}");
    assert_eq!(written(&ledger), "python attempt 1\n", "the effect is there, and nobody was told");
    let stored = takes_over(server, &ledger);
    assert_eq!((&stored["by"], &stored["attempt"]), (&json!("typescript"), &json!(2)), "{stored}");
    assert!(stored["fence"].as_u64() > died["fence"].as_u64(), "a fence only grows: {died} {stored}");
    assert_eq!(written(&ledger), "python attempt 1\ntypescript attempt 2\n");
    let derived = json!(derived());
    assert_eq!((&died["derived"], &stored["derived"]), (&derived, &derived), "one key further down");
    stored
}

/// A Python worker that is killed between its effect and its outcome. What it knew of its run.
fn dies(server: &Server, ledger: &Path) -> Value {
    let python = Python::new();
    let mut command = python.command();
    command.args(["-m", "tests.worker", "die", &server.url(""), SCOPE, OPERATION, NAME]).arg(ledger);
    let mut worker = command.stdout(Stdio::piped()).spawn().expect("Python starts");
    let mut line = String::new();
    BufReader::new(worker.stdout.take().expect("is piped")).read_line(&mut line).expect("says that it ran");
    // SIGKILL: it cannot say goodbye.
    worker.kill().expect("is ours");
    worker.wait().expect("is ours");
    serde_json::from_str(&line).expect("is JSON")
}

/// A TypeScript worker that waits for the key and does its work. What it came to.
fn takes_over(server: &Server, ledger: &Path) -> Value {
    let typescript = TypeScript::compile();
    let mut command = typescript.command();
    command.args(["worker.js", "take", &server.url(""), SCOPE, OPERATION, NAME]).arg(ledger);
    ran(&mut command).json()
}

fn written(ledger: &Path) -> String {
    std::fs::read_to_string(ledger).expect("is there")
}

/// The key for systems further down, as Rust derives it.
fn derived() -> String {
    let parts = PermitParts {
        key: Key::scoped([SCOPE], OPERATION, NAME).expect("is fine"),
        permit_id: PermitId::new(1),
        attempt: 1,
        fence: Version::new(1),
        lease: Duration::from_secs(1),
    };
    Semel::new(MemoryStore::new()).permit(parts).derive("provider.charge")
}
