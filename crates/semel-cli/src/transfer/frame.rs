//! The first line of an export, and the last.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

/// What the first line says, so that nothing else is taken for an export.
const FORMAT: &str = "semel-export";
/// The version of the lines that this release writes, and the newest that it reads.
pub(super) const VERSION: u32 = 1;

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    version: u32,
    /// Where the records come from; for people.
    from: String,
    /// The store's now; for people.
    exported_at: String,
    /// Only ids behind this one are in it.
    after: Option<String>,
}

/// The last line: without it, an export was cut.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct End {
    end: Counts,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Counts {
    records: u64,
}

impl Header {
    pub(super) fn new(from: String, exported_at: String, after: Option<String>) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, from, exported_at, after }
    }

    /// The header, if it is one that this release can read.
    pub(super) fn parse(line: &[u8]) -> Result<Self> {
        /// What every version has, whatever else it may have.
        #[derive(Deserialize)]
        struct Any {
            format: String,
            version: u32,
        }
        let Ok(Any { format, version }) = serde_json::from_slice(line) else {
            bail!("the first line is no header of an export; was this made by `semel export`?");
        };
        if format != FORMAT {
            bail!("the first line says that this is `{format}`, and no export of semel");
        }
        if version > VERSION {
            bail!(
                "this export has version {version}, and this release reads up to {VERSION}; nothing was changed: upgrade \
                 semel, then import it"
            );
        }
        match serde_json::from_slice(line) {
            Ok(header) => Ok(header),
            Err(error) => bail!("the first line is damaged: {error}"),
        }
    }
}

impl End {
    pub(super) fn new(records: u64) -> Self {
        Self { end: Counts { records } }
    }

    /// The end, if this line is one.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        // A record's line begins with its id: most need no second look.
        line.starts_with(b"{\"end\"").then(|| serde_json::from_slice(line).ok()).flatten()
    }

    pub(super) fn records(self) -> u64 {
        self.end.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_version_is_refused_whatever_else_it_says() {
        let newer = br#"{"format":"semel-export","version":2,"surprise":[1]}"#;
        let error = Header::parse(newer).expect_err("is newer").to_string();
        assert!(error.contains("version 2") && error.contains("upgrade"), "{error}");
    }

    #[test]
    fn what_is_no_export_is_refused() {
        for line in [&b"{}"[..], b"hello", b"", br#"{"format":"else","version":1}"#] {
            assert!(Header::parse(line).is_err());
        }
        let header = Header::new("memory:".to_owned(), String::new(), None);
        assert!(Header::parse(&serde_json::to_vec(&header).expect("is JSON")).is_ok());
    }

    #[test]
    fn an_end_is_told_from_a_record() {
        let end = serde_json::to_vec(&End::new(7)).expect("is JSON");
        assert_eq!(End::parse(&end).map(End::records), Some(7));
        assert!(End::parse(br#"{"id":"00"}"#).is_none());
    }
}
