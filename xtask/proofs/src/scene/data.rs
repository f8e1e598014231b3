//! Payments, webhooks and invoices of a few tenants: done, running, held and released, made over the API.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use test_http::blocking::Client;

/// How many records are made with one request.
const BATCH: usize = 1_000;
const OWNERS: [&str; 3] = ["payments-7f9c pid 4242", "billing-worker-2 pid 88", "eu-west-1c/payouts-0"];
const TENANTS: [[&str; 2]; 4] = [["acme", "eu"], ["acme", "us"], ["globex", "eu"], ["initech", "us"]];

/// What somebody may want to look at.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// Ids of held records.
    pub held: Vec<String>,
    /// Ids of running ones.
    pub running: Vec<String>,
    /// Ids of done ones.
    pub done: Vec<String>,
}

/// Fills a server's store: so many done records, and a few of every other kind.
pub fn fill(client: &mut Client, done: usize) -> Result<Scene> {
    let numbers: Vec<usize> = (0..done).collect();
    let mut scene = Scene::default();
    for batch in numbers.chunks(BATCH) {
        let items: Vec<_> = batch.iter().map(|&number| payment(number)).collect();
        let told = client.call("/v1/record_once/batch", &json!({ "items": items }))?;
        let first = told.pointer("/answers/0/id").and_then(Value::as_str);
        scene.done.push(first.with_context(|| format!("a batch was answered with {told}"))?.to_owned());
    }
    for number in 0..8 {
        scene
            .running
            .push(word(&claimed(client, "send-invoice", &format!("inv-{}", 2_210 + number), number)?, "id")?);
    }
    let reasons = [
        "the provider did not answer within 30 s",
        "lapsed",
        "attempts",
        "two payouts on one day: ask finance",
    ];
    for (number, reason) in reasons.iter().enumerate() {
        let run = claimed(client, "payout", &format!("2026-11-{:02}", 10 + number), number)?;
        client.call("/v1/hold", &json!({ "permit": word(&run, "permit")?, "reason": reason }))?;
        scene.held.push(word(&run, "id")?);
    }
    for number in 0..3 {
        let run = claimed(client, "webhook", &format!("evt_{}", 90_000 + number), number)?;
        client.call(
            "/v1/release",
            &json!({ "permit": word(&run, "permit")?, "reason": "502 from the receiver" }),
        )?;
    }
    Ok(scene)
}

/// What happens on an ordinary second: new work, retries, a mismatch.
pub(super) fn bustle(client: &mut Client, round: usize) -> Result<()> {
    for number in 0..6 + round % 5 {
        let run = claimed(client, "charge", &format!("live-{round}-{number}"), number)?;
        client.call(
            "/v1/complete",
            &json!({ "permit": word(&run, "permit")?, "outcome": { "json": { "status": "succeeded" } } }),
        )?;
    }
    let again = (0..3).map(|number| claim("charge", &format!("live-{round}-{number}"), number));
    client.call("/v1/claim/batch", &json!({ "items": again.collect::<Vec<_>>() }))?;
    let other = json!({ "scope": ["acme", "eu"], "operation": "charge", "name": format!("live-{round}-0"), "request": { "amount": round } });
    client.call("/v1/claim", &other).map(drop)
}

fn payment(number: usize) -> Value {
    let outcome = json!({ "json": {
        "id": format!("ch_{:08x}", number.wrapping_mul(2_654_435_761)), "amount": 990 + number % 7_000, "currency": "eur",
        "status": "succeeded", "captured": true,
    } });
    let mut item = claim("charge", &format!("order-{}", 480_000 + number), number);
    if let Some(members) = item.as_object_mut() {
        members.insert("outcome".to_owned(), outcome);
    }
    item
}

fn claim(operation: &str, name: &str, number: usize) -> Value {
    let tenant = TENANTS.get(number % TENANTS.len()).copied().unwrap_or(["acme", "eu"]);
    let owner = OWNERS.get(number % OWNERS.len()).copied().unwrap_or("worker");
    json!({ "scope": tenant, "operation": operation, "name": name, "owner": owner, "lapse": "hold",
        "lease_ms": 600_000, "request": { "amount": 1_999, "currency": "eur" } })
}

fn claimed(client: &mut Client, operation: &str, name: &str, number: usize) -> Result<Value> {
    client.call("/v1/claim", &claim(operation, name, number))
}

fn word(answer: &Value, name: &str) -> Result<String> {
    let word = answer.get(name).and_then(Value::as_str);
    word.map(str::to_owned).with_context(|| format!("there is no {name} in {answer}"))
}

/// Takes every event but those that nobody can bill.
const BILL: &str =
    "#!/bin/sh\nif grep -q refused; then echo 'card expired' >&2; exit 65; fi\necho '{\"billed\":true}'\n";

/// Has the binary consume two small files on this store, which nobody else may hold meanwhile.
pub(super) fn streams(binary: &Path, store: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bill = folder.path().join("bill");
    fs::write(&bill, BILL)?;
    fs::set_permissions(&bill, fs::Permissions::from_mode(0o755))?;
    for (pipeline, file, events) in [("billing", "orders.jsonl", 12), ("webhooks", "deliveries.jsonl", 5)] {
        let line = |number: usize| {
            let what = if number.is_multiple_of(5) { "refused" } else { "paid" };
            format!("{{\"id\":\"{pipeline}-{number}\",\"card\":\"{what}\"}}\n")
        };
        fs::write(folder.path().join(file), (1..=events).map(line).collect::<Vec<_>>().concat())?;
        let mut command = Command::new(binary);
        command.args(["consume", "--store", store, "--pipeline", pipeline, "--key", "pointer:/id"]);
        command.arg("--source").arg(format!("file:{file}")).arg("--exec").arg(&bill);
        command.arg("--dead-letters").arg(folder.path().join("dead.jsonl"));
        command.current_dir(folder.path()).env_remove("SEMEL_STORE").stdin(Stdio::null());
        let done = command.output().with_context(|| format!("cannot start {}", binary.display()))?;
        ensure!(done.status.success(), "`semel consume` failed: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(())
}
