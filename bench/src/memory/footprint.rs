//! Bytes a settled record: what was allocated, and how the process grew.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::results::Footprint;
use super::rounds::{LEAN, MAP, STORE};
use crate::args::FootprintAsk;
use crate::contestants::{Contestant, LeanMap, PlainMap, StoreAlone, roomy};
use crate::counting;
use crate::inputs::{KEY_BYTES, Response};
use crate::runtime::runtime;

/// Measures each contestant in a process of its own: memory that another one freed would hide what it takes.
pub(super) fn measure(keys: u64, step: impl Fn()) -> Result<Vec<Footprint>> {
    let mut found = Vec::new();
    for contestant in [STORE, MAP, LEAN] {
        found.push(in_a_process_of_its_own(contestant, keys)?);
        step();
    }
    Ok(found)
}

fn in_a_process_of_its_own(contestant: &str, keys: u64) -> Result<Footprint> {
    let program = std::env::current_exe().context("this program cannot be found again")?;
    let output = Command::new(program)
        .args(["footprint", contestant, &keys.to_string()])
        .output()
        .context("a second process cannot start")?;
    ensure!(output.status.success(), "footprint: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("the second process speaks no JSON")
}

/// The other side: fills one contestant, and prints what that took.
pub(crate) fn footprint_of_this_process(ask: &FootprintAsk) -> Result<()> {
    let footprint = match ask.contestant.as_str() {
        STORE => fill(StoreAlone::new(roomy()), ask),
        MAP => fill(PlainMap::new(), ask),
        LEAN => fill(LeanMap::new(), ask),
        other => bail!("no contestant `{other}`; there are `{STORE}`, `{MAP}` and `{LEAN}`"),
    }?;
    println!("{}", serde_json::to_string(&footprint)?);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "bytes a record are read to three digits")]
fn fill<C: Contestant>(contestant: C, ask: &FootprintAsk) -> Result<Footprint> {
    let runtime = runtime(1)?;
    let resident = resident_bytes()?;
    counting::start();
    runtime.block_on(async {
        for number in 0..ask.keys {
            contestant.cycle(number).await?;
        }
        anyhow::Ok(())
    })?;
    let allocated = counting::allocated_bytes();
    let grown = resident_bytes()?.saturating_sub(resident);
    drop(contestant);
    let records = ask.keys as f64;
    Ok(Footprint {
        contestant: ask.contestant.clone(),
        records: ask.keys,
        allocated_bytes: allocated as f64 / records,
        resident_bytes: grown as f64 / records,
        payload_bytes: (KEY_BYTES + Response::new().encoded().len()) as f64,
    })
}

fn resident_bytes() -> Result<u64> {
    // Pages are 4 KiB wherever this file exists by default.
    const PAGE_BYTES: u64 = 4_096;
    let statm = fs::read_to_string("/proc/self/statm").context("resident memory is read on Linux only")?;
    let pages = statm.split(' ').nth(1).context("statm has a second number")?.parse::<u64>()?;
    Ok(pages * PAGE_BYTES)
}
