//! The commands that `cargo xtask` hands on are there.

use std::process::Command;

#[test]
fn every_command_that_xtask_hands_on_is_known() {
    for command in ["crash", "prove", "simulate", "fuzz-api", "screenshots", "dashboard"] {
        let help = Command::new(env!("CARGO_BIN_EXE_proofs")).args([command, "--help"]).output().unwrap();
        assert!(help.status.success(), "{command}");
        let text = String::from_utf8_lossy(&help.stdout);
        assert!(text.contains(&format!("Usage: cargo xtask {command}")), "{text}");
    }
}
