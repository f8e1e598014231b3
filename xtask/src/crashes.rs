//! A few crashes of every kind, side by side: as many as every change can afford.

use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use xtask::run::{program, started};

/// Every kind of crash, the longest first. Each runs as often as it does by default.
const KINDS: [&str; 13] = [
    "consumer",
    "failover",
    "cluster",
    "power",
    "partition",
    "postgres",
    "sentinel",
    "standby-cut",
    "pooler",
    "redis",
    "old-primary",
    "transaction",
    "kill",
];
/// How many run at a time. Most of their time they wait: for servers to start, for disks, for a failover.
const AT_ONCE: usize = 4;

/// Runs them all with these variables, for what they build; what each writes is kept together. Fails after all have ended, if any failed.
pub(crate) fn few(proofs: &Path, environment: &[(&str, &str)]) -> Result<()> {
    let left = Mutex::new(KINDS.into_iter());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(kind) = next(&left) {
                    let done = one(proofs, kind, environment);
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    match done {
                        Ok((text, is_fine)) => {
                            eprint!("{text}");
                            failed.extend((!is_fine).then(|| kind.to_owned()));
                        }
                        Err(error) => failed.push(format!("{kind} ({error:#})")),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    ensure!(failed.is_empty(), "these crashes did not pass: {}", failed.join(", "));
    Ok(())
}

fn next(left: &Mutex<impl Iterator<Item = &'static str>>) -> Option<&'static str> {
    left.lock().unwrap_or_else(PoisonError::into_inner).next()
}

/// Runs one kind: everything that it wrote, and whether it passed.
fn one(proofs: &Path, kind: &str, environment: &[(&str, &str)]) -> Result<(String, bool)> {
    started(&format!("crash {kind}"));
    let (mut output, input) = std::io::pipe().context("no pipe")?;
    let mut command = program(proofs, ["crash", kind]).into_command();
    command
        .envs(environment.iter().copied())
        .stdin(std::process::Stdio::null())
        .stdout(input.try_clone()?)
        .stderr(input);
    let mut child = command.spawn().context("the proofs do not start")?;
    // The command holds ends of the pipe, which would never end.
    drop(command);
    let mut text = Vec::new();
    output.read_to_end(&mut text)?;
    let status = child.wait()?;
    Ok((String::from_utf8_lossy(&text).into_owned(), status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kind_writes_is_kept_together_and_a_failure_is_seen() {
        let (text, is_fine) = one(Path::new("echo"), "kill", &[]).unwrap();
        assert_eq!((text.as_str(), is_fine), ("crash kill\n", true));
        assert!(few(Path::new("echo"), &[]).is_ok());
        let error = few(Path::new("false"), &[]).unwrap_err().to_string();
        assert!(KINDS.iter().all(|kind| error.contains(kind)), "{error}");
    }
}
