//! Which record is meant: by its key, or by the beginning of its id.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Filter, Store};
use semel::{Key, RecordId};

use semel_server::sight::walk::Walk;

/// Fewer digits than these name hardly anything.
const DIGITS_MIN: usize = 4;
/// An id has so many.
const DIGITS_MAX: usize = 64;

/// Which record is meant.
#[derive(Clone, Debug)]
pub(crate) enum Which {
    /// The one of this key.
    Key(Key),
    /// The only one whose id begins so.
    Id(IdPrefix),
}

/// How an id begins, in hex digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdPrefix(String);

/// A record, and the store's now when it was read.
pub(super) struct Found {
    pub(super) record: Record,
    pub(super) now: Timestamp,
}

impl Which {
    /// The record, if there is one that counts.
    pub(super) async fn find(&self, store: &dyn Store) -> Result<Found> {
        match self {
            Self::Key(key) => by_key(key, store).await,
            Self::Id(prefix) => by_id(prefix, store).await,
        }
    }
}

async fn by_key(key: &Key, store: &dyn Store) -> Result<Found> {
    let answer = store.load(vec![key.id()]).await?;
    let found = answer.value.into_iter().next().flatten();
    match found.filter(|record| record.key == *key && record.is_live(answer.now)) {
        Some(record) => Ok(Found { record, now: answer.now }),
        None => bail!(
            "this store has no record of that key: nobody has claimed it, or its retention is over. Scope, operation \
             and name must be exact; `semel keys list --operation {}` shows what there is",
            key.operation()
        ),
    }
}

async fn by_id(prefix: &IdPrefix, store: &dyn Store) -> Result<Found> {
    let (before, last) = (prefix.before_first(), prefix.last());
    let mut walk = Walk::new(store, Filter::default(), before);
    let mut found: Vec<Found> = Vec::new();
    while let Some(page) = walk.next_of(2).await? {
        for record in page.records.into_iter().filter(|record| record.key.id() <= last) {
            found.push(Found { record, now: page.now });
        }
        if found.len() > 1 {
            let also: Vec<_> = found.iter().map(|found| found.record.key.id().to_string()).collect();
            bail!("more than one id begins with {prefix}; give more digits:\n  {}", also.join("\n  "));
        }
        if walk.after().is_none_or(|after| after >= last) {
            break;
        }
    }
    match found.pop() {
        Some(found) => Ok(found),
        None => bail!(
            "this store has no record whose id begins with {prefix}: its retention is over, or it is in another store. \
             `semel keys list` shows what there is"
        ),
    }
}

impl IdPrefix {
    /// The id before the first that begins so; `None` if that is the very first.
    pub(crate) fn before_first(&self) -> Option<RecordId> {
        let mut bytes = self.padded('0');
        for byte in bytes.iter_mut().rev() {
            let (less, borrowed) = byte.overflowing_sub(1);
            *byte = less;
            if !borrowed {
                return Some(RecordId::from_bytes(bytes));
            }
        }
        None
    }

    /// The last id that begins so.
    pub(crate) fn last(&self) -> RecordId {
        RecordId::from_bytes(self.padded('f'))
    }

    fn padded(&self, filler: char) -> [u8; 32] {
        let digits: Vec<u8> = self
            .0
            .chars()
            .chain(std::iter::repeat(filler))
            .take(DIGITS_MAX)
            .map(|digit| u8::try_from(digit.to_digit(16).unwrap_or(0)).unwrap_or(0))
            .collect();
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = pair.iter().fold(0, |byte, digit| byte << 4 | digit);
        }
        bytes
    }
}

impl FromStr for IdPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim().to_ascii_lowercase();
        if text.len() < DIGITS_MIN || text.len() > DIGITS_MAX || !text.chars().all(|c| c.is_ascii_hexdigit())
        {
            return Err(format!(
                "`{text}` is no id: give {DIGITS_MIN} to {DIGITS_MAX} of its hex digits, as `semel keys list` shows them, or \
                 name the key with --scope, --operation and --name"
            ));
        }
        Ok(Self(text))
    }
}

impl fmt::Display for IdPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_stands_for_the_ids_between_its_bounds() {
        let prefix: IdPrefix = "3F2a".parse().expect("is fine");
        let before = prefix.before_first().expect("is not the first").to_string();
        assert!(before.starts_with("3f29ff") && before.ends_with("ff"), "{before}");
        assert!(prefix.last().to_string().starts_with("3f2aff"));
        let odd: IdPrefix = "3f2a9".parse().expect("is fine");
        assert!(odd.last().to_string().starts_with("3f2a9f"));
        assert_eq!("0000".parse::<IdPrefix>().expect("is fine").before_first(), None);
    }

    #[test]
    fn what_is_no_id_is_refused_with_what_is() {
        for text in ["", "3f2", "order-1042", &"a".repeat(65)] {
            let error = text.parse::<IdPrefix>().expect_err(text);
            assert!(error.contains("--operation"), "{error}");
        }
    }
}
