//! Offsets of streams, moved through the same swap as everything else.

use super::apart::Apart;
use super::carry::{Guess, let_go};
use super::semel::Semel;
use crate::error::Result;
use crate::key::Key;
use crate::machine::offset::{self, Move, Moved};
use crate::record::Record;

impl Semel {
    /// Moves the offset under this key.
    pub async fn move_offset(&self, key: &Key, wanted: Move) -> Result<Moved> {
        let (own, permit_id) = (key.clone(), self.inner.mint());
        let rule = move |found: Option<&Record>, now| offset::shift(found, &own, permit_id, &wanted, now);
        Ok(self.inner.carry(key.clone(), Guess::Open, rule, let_go).await?.answer)
    }

    /// The move of an offset, to be carried inside a transaction.
    pub fn move_offset_apart(&self, key: &Key, wanted: Move) -> Apart<Moved> {
        let (own, permit_id) = (key.clone(), self.inner.mint());
        Apart::new(key, move |found, now| offset::shift(found, &own, permit_id, &wanted, now))
    }
}
