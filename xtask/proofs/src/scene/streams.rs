//! Pipelines that have read something: most of it fine, and some of it put aside.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

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
