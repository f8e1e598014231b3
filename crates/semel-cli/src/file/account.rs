//! What was found, as a table for people or JSON for scripts.

use semel_file::check::{Damage, Findings};
use serde_json::{Value, json};

use super::command::Look;

/// For people.
pub(super) fn table(look: &Look, findings: &Findings) -> String {
    let line = |name: &str, value: &dyn std::fmt::Display| format!("{name:<18} {value:>16}");
    let damage = |Damage { file, offset, bytes, what }: &Damage| {
        format!("  {file} at byte {offset}, {bytes} bytes: {what}")
    };
    let mut lines = vec![
        line("segments", &findings.segments),
        line("bytes of frames", &findings.bytes),
        line("whole frames", &findings.frames),
        line("records", &findings.records),
        line("unfinished bytes", &findings.unfinished_bytes),
        line("damaged places", &findings.damages.len()),
    ];
    lines.extend(findings.damages.iter().map(damage));
    lines.push(String::new());
    if findings.unfinished_bytes > 0 {
        lines.push(
            "The unfinished bytes are a last write that was cut off. Nobody was told that it".to_owned(),
        );
        lines.push("happened, and the next opening drops it.".to_owned());
    }
    if findings.is_whole() {
        let copied = look.copy_to.is_some();
        lines.push(if copied { "The copy holds everything." } else { "Everything is whole." }.to_owned());
    }
    lines.join("\n") + "\n"
}

/// For scripts.
pub(super) fn json(findings: &Findings) -> Value {
    let damage = |Damage { file, offset, bytes, what }: &Damage| json!({ "file": file, "offset": offset, "bytes": bytes, "what": what });
    json!({
        "segments": findings.segments,
        "bytes": findings.bytes,
        "frames": findings.frames,
        "records": findings.records,
        "unfinished_bytes": findings.unfinished_bytes,
        "damages": findings.damages.iter().map(damage).collect::<Vec<_>>(),
        "whole": findings.is_whole(),
    })
}
