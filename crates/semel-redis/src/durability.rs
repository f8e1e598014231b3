//! How much a server may lose when it, or its machine, stops without warning.

use std::fmt;

use semel::Result;

use crate::config::invalid;

/// What survives when a server stops without warning, by its own settings; the best last.
///
/// This is about one server and its disk. Replicas are another matter: what a master acknowledged less than a
/// moment ago may be missing after a failover, whichever class it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// Nothing is kept on disk: a restart forgets everything.
    None,
    /// The settings could not be read, so nothing is promised. Ask the server's operator.
    Unreadable,
    /// Only what the last snapshot holds survives: minutes may be lost.
    Snapshots,
    /// The log is written, and reaches the disk when the system sees fit: half a minute may be lost at a power cut.
    SystemDecides,
    /// The log reaches the disk every second: a second or two may be lost.
    EverySecond,
    /// The log reaches the disk before any write is acknowledged: every acknowledged write survives.
    Always,
}

impl Durability {
    /// The word for it, as in a URL and in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Unreadable => "unreadable",
            Self::Snapshots => "snapshots only",
            Self::SystemDecides => "no",
            Self::EverySecond => "everysec",
            Self::Always => "always",
        }
    }

    /// The least that a caller asks for.
    pub(crate) fn wanted(word: &str) -> Result<Self> {
        match word {
            "none" => Ok(Self::None),
            "snapshots" => Ok(Self::Snapshots),
            "everysec" => Ok(Self::EverySecond),
            "always" => Ok(Self::Always),
            _ => Err(invalid("durability must be none, snapshots, everysec or always: choose one")),
        }
    }

    /// The class of a server with these settings; `None` for one that could not be read.
    pub(crate) fn found(settings: &Settings) -> Self {
        match (settings.appendonly.as_deref(), settings.appendfsync.as_deref()) {
            (Some("yes"), Some("always")) if settings.syncs_pause.as_deref() == Some("yes") => {
                Self::SystemDecides
            }
            (Some("yes"), Some("always")) => Self::Always,
            (Some("yes"), Some("everysec")) => Self::EverySecond,
            (Some("yes"), Some("no")) => Self::SystemDecides,
            (Some("no"), _) => match settings.save.as_deref() {
                Some("") => Self::None,
                Some(_) => Self::Snapshots,
                None => Self::Unreadable,
            },
            (_, _) => Self::Unreadable,
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The settings of a server; `None` where it could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) release: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) maxmemory_policy: Option<String>,
    pub(crate) appendonly: Option<String>,
    pub(crate) appendfsync: Option<String>,
    /// `no-appendfsync-on-rewrite`: whether the log goes unsynced while it is rewritten.
    pub(crate) syncs_pause: Option<String>,
    pub(crate) save: Option<String>,
    /// How many replicas are attached.
    pub(crate) replicas: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(appendonly: Option<&str>, appendfsync: Option<&str>, save: Option<&str>) -> Durability {
        let own = |word: Option<&str>| word.map(str::to_owned);
        let (appendonly, appendfsync, save) = (own(appendonly), own(appendfsync), own(save));
        Durability::found(&Settings { appendonly, appendfsync, save, ..Settings::default() })
    }

    #[test]
    fn the_class_follows_from_the_settings() {
        let (yes, no) = (Some("yes"), Some("no"));
        assert_eq!(found(yes, Some("always"), None), Durability::Always);
        assert_eq!(found(yes, Some("everysec"), Some("")), Durability::EverySecond);
        assert_eq!(found(yes, no, None), Durability::SystemDecides);
        assert_eq!(found(no, Some("always"), Some("3600 1")), Durability::Snapshots);
        assert_eq!(found(no, None, Some("")), Durability::None);
        assert_eq!(found(yes, None, None), Durability::Unreadable);
        assert_eq!(found(None, None, None), Durability::Unreadable);
    }

    #[test]
    fn a_log_that_goes_unsynced_while_rewritten_is_not_always() {
        let word = |word: &str| Some(word.to_owned());
        let mut settings = Settings {
            appendonly: word("yes"),
            appendfsync: word("always"),
            syncs_pause: word("no"),
            ..Settings::default()
        };
        assert_eq!(Durability::found(&settings), Durability::Always);
        settings.syncs_pause = word("yes");
        assert_eq!(Durability::found(&settings), Durability::SystemDecides);
    }

    #[test]
    fn a_better_class_is_greater() {
        assert!(Durability::Always > Durability::EverySecond);
        assert!(Durability::EverySecond > Durability::Snapshots);
        assert!(Durability::Snapshots > Durability::Unreadable && Durability::Unreadable > Durability::None);
    }
}
