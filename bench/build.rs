//! Tells the program which cargo profile it is built with, so that every report can say so.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    // OUT_DIR is TARGET/PROFILE/build/…/out. PROFILE in the environment says `release` for every optimised profile.
    let build = out.ancestors().find(|folder| folder.ends_with("build"));
    let profile = build.and_then(Path::parent).and_then(Path::file_name).unwrap_or_default();
    println!("cargo::rustc-env=BENCH_PROFILE={}", profile.display());
}
