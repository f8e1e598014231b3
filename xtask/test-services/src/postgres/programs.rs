//! Where PostgreSQL's programs are: Debian keeps them off the path, a folder for each version.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::place::is_program;

const DEBIAN: &str = "/usr/lib/postgresql";
const VERSION_LEAST: u32 = 15;

/// The folder with `postgres`, `initdb` and the rest; the newest, if there are several.
pub(crate) fn folder() -> Result<PathBuf> {
    newest(Path::new(DEBIAN)).or_else(on_path).with_context(|| {
        format!("PostgreSQL {VERSION_LEAST} or newer is not installed: apt-get install postgresql")
    })
}

fn newest(folder: &Path) -> Option<PathBuf> {
    let versions = folder.read_dir().ok()?.flatten();
    let numbers = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let bins = numbers
        .filter(|number| *number >= VERSION_LEAST)
        .map(|number| (number, folder.join(number.to_string()).join("bin")));
    let (_, bin) = bins.filter(|(_, bin)| is_program(&bin.join("initdb"))).max()?;
    Some(bin)
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| is_program(&folder.join("initdb")))
}
