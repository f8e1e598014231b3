//! A folder of one's own for one run, gone with it; what a run that was killed left behind, the next one removes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use xtask::run;

/// How the name of every such folder starts.
const PREFIX: &str = "semel-crash-";

/// Whether a folder is removed at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Remove,
    Keep,
}

/// A folder that only this run uses.
pub(super) struct Place {
    path: PathBuf,
    fate: Fate,
}

impl Place {
    pub(super) fn take() -> Result<Self> {
        let temp = std::env::temp_dir();
        sweep(&temp);
        let path = temp.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path, fate: Fate::Remove })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder for whoever wants to know what went wrong in it.
    pub(super) fn keep(&mut self) {
        self.fate = Fate::Keep;
        run::failed(&format!("the folder is kept: {}", self.path.display()));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.fate == Fate::Remove {
            // What is left is removed by the next run.
            drop(fs::remove_dir_all(&self.path));
        }
    }
}

/// Removes the folders of runs whose process is gone. Their mounts went with their mount namespace.
fn sweep(temp: &Path) {
    let Ok(listing) = fs::read_dir(temp) else { return };
    for entry in listing.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|number| number.parse::<u32>().ok());
        if process.is_some_and(|number| !Path::new(&format!("/proc/{number}")).exists()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_processes_that_are_gone_are_swept() {
        let place = Place::take().unwrap();
        let [gone, alive, foreign] = ["semel-crash-4294967295", "semel-crash-1", "other-4294967295"]
            .map(|name| place.path().join(name));
        for folder in [&gone, &alive, &foreign] {
            fs::create_dir(folder).unwrap();
        }
        sweep(place.path());
        assert!(!gone.exists());
        assert!(alive.exists());
        assert!(foreign.exists());
    }
}
