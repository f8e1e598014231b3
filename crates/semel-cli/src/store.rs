//! Which stores this binary can open, and what their addresses look like.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Result, bail};
use semel::store::{MemoryStore, Store};
use semel_file::FileStore;

/// Bytes that a record of a measurement takes at most, its outcome included.
const RECORD_BYTES_MAX: usize = 1_024;

/// What there is, for whoever asked for something else.
const AVAILABLE: &str =
    "available are `memory:` (inside this process) and `file:FOLDER` (on this machine's disk)";

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// `memory:`, inside this process.
    Memory,
    /// `file:FOLDER`, on this machine's disk.
    File(PathBuf),
}

impl Address {
    /// The store, with room for this many records.
    pub(crate) fn open(&self, records: usize) -> Result<Arc<dyn Store>> {
        Ok(match self {
            Self::Memory => Arc::new(
                MemoryStore::builder()
                    .records_max(records)
                    .bytes_max(records.saturating_mul(RECORD_BYTES_MAX))
                    .build(),
            ),
            Self::File(folder) => Arc::new(FileStore::open(folder)?),
        })
    }
}

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("memory", _)) => bail!("a memory store has no path: use `memory:`"),
            Some(("file", "")) => bail!("a file store needs a folder: use `file:semel-data`, say"),
            Some(("file", folder)) => Ok(Self::File(folder.into())),
            Some((scheme, _)) => bail!("this build has no store for `{scheme}:`; {AVAILABLE}"),
            None => bail!("`{text}` is not the address of a store; {AVAILABLE}"),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::File(folder) => write!(f, "file:{}", folder.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_shown() {
        for address in [Address::Memory, Address::File("semel-data".into()), Address::File("/a:b".into())] {
            assert_eq!(address.to_string().parse::<Address>().expect("is fine"), address);
        }
    }

    #[test]
    fn a_file_store_without_a_folder_is_refused() {
        let error = "file:".parse::<Address>().expect_err("has no folder").to_string();
        assert!(error.contains("file:semel-data"), "{error}");
    }

    #[test]
    fn an_address_without_a_store_is_told_what_there_is() {
        for text in ["redis://localhost", "memory", "memory:/tmp", "", "postgres:"] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains("`memory:`"), "{text}: {error}");
        }
    }
}
