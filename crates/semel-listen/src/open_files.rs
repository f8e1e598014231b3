//! How many files this process may have open: every connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises what this process may have open towards `wanted`, as far as it may by itself. Says how many that are; `None`
/// for any number.
pub fn raise_open_files(wanted: u64) -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current?;
    if current >= wanted {
        return Some(current);
    }
    let raised = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let changed = Rlimit { current: Some(raised), maximum: limit.maximum };
    match setrlimit(Resource::Nofile, changed) {
        Ok(()) => Some(raised),
        Err(_) => Some(current),
    }
}
