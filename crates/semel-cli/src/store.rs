//! Which stores this binary can open, and what their addresses look like.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use semel::store::MemoryStore;

/// Bytes that a record of a measurement takes at most, its outcome included.
const RECORD_BYTES_MAX: usize = 1_024;

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// `memory:`, inside this process.
    Memory,
}

impl Address {
    /// The store, with room for this many records.
    pub(crate) fn open(&self, records: usize) -> MemoryStore {
        match self {
            Self::Memory => MemoryStore::builder()
                .records_max(records)
                .bytes_max(records.saturating_mul(RECORD_BYTES_MAX))
                .build(),
        }
    }
}

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("memory", _)) => bail!("a memory store has no path: use `memory:`"),
            Some((scheme, _)) => {
                bail!("this build has no store for `{scheme}:`; available is `memory:` (inside this process)")
            }
            None => {
                bail!("`{text}` is not the address of a store; available is `memory:` (inside this process)")
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_shown() {
        assert_eq!(Address::Memory.to_string().parse::<Address>().expect("is fine"), Address::Memory);
    }

    #[test]
    fn an_address_without_a_store_is_told_what_there_is() {
        for text in ["redis://localhost", "memory", "memory:/tmp", ""] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains("`memory:`"), "{text}: {error}");
        }
    }
}
