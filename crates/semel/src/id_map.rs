//! Maps by record id: fast, because ids are digests, and safe, because a secret goes in.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use crate::key::RecordId;

/// A map by id.
pub(crate) type IdMap<T> = HashMap<RecordId, T, IdSpread>;

/// Spreads ids over a map. They are digests, so a few of their bytes do; but strangers choose the keys behind them and
/// could choose many that fall into one place, so a secret goes in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdSpread {
    secret: u64,
}

impl Default for IdSpread {
    #[expect(clippy::disallowed_methods, reason = "the secret of a map decides nothing that a caller sees")]
    fn default() -> Self {
        Self { secret: rand::random() }
    }
}

impl IdSpread {
    /// A hash of some bytes of an id.
    pub(crate) fn hash(self, part: u64) -> u64 {
        let product = (part ^ self.secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The low half of a product knows only the low half of its factors; the high half knows all.
        product ^ (product >> 32)
    }
}

impl BuildHasher for IdSpread {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher { spread: *self, hash: 0 }
    }
}

pub(crate) struct IdHasher {
    spread: IdSpread,
    hash: u64,
}

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(part) = bytes.get(8..).and_then(<[u8]>::first_chunk) {
            self.hash = self.spread.hash(u64::from_le_bytes(*part));
        }
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}
