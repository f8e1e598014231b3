//! What is in `redis.conf`.

use crate::place::Place;

/// When Redis syncs what it appended to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFsync {
    /// Before it answers.
    Always,
    /// Every second; a power cut loses what came since.
    EverySecond,
    /// When the operating system likes to.
    Never,
}

impl AppendFsync {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::EverySecond => "everysec",
            Self::Never => "no",
        }
    }
}

/// Settings in the order they are given; of two for one name Redis takes the last.
pub(super) fn text(place: &Place, own: &[(&str, &str)]) -> String {
    let (port, folder) = (place.port.to_string(), place.folder.to_string_lossy());
    let durable = [
        ("port", port.as_str()),
        ("bind", "127.0.0.1"),
        ("dir", folder.as_ref()),
        ("daemonize", "no"),
        ("appendonly", "yes"),
        ("appendfsync", AppendFsync::Always.word()),
        ("maxmemory-policy", "noeviction"),
        // The appended file holds everything; snapshots would only get in the way of measurements.
        ("save", ""),
        // A replica is served at once, and found to be gone soon.
        ("repl-diskless-sync-delay", "0"),
        ("repl-timeout", "10"),
    ];
    let line = |(name, value): &(&str, &str)| {
        let value = if value.is_empty() { "\"\"" } else { value };
        format!("{name} {value}\n")
    };
    durable.iter().chain(own).map(line).collect::<Vec<_>>().concat()
}
