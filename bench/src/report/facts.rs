//! Which machine this is.

use std::fs;

use serde::Serialize;

/// What a reader must know to compare numbers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Facts {
    pub(crate) cores: usize,
    pub(crate) cpu: String,
    pub(crate) system: String,
}

impl Facts {
    pub(crate) fn of_this_machine() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: model.map_or("unknown", |(_, model)| model.trim()).to_owned(),
            system: format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned(),
        }
    }
}
