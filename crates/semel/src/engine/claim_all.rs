//! Several keys, all or nothing.

use super::ask::Claim;
use super::decision::Decision;
use super::permit::Permit;
use super::semel::Semel;
use crate::error::{Error, Result};
use crate::key::Key;

/// What `claim_all` is told.
#[derive(Debug)]
#[must_use = "only Run gives the right to run"]
pub enum ClaimedAll {
    /// Every key is this caller's: one permit each, in the order of the claims.
    Run(Vec<Permit>),
    /// This key is not, so none is.
    Refused {
        /// The first key, in digest order, that did not run.
        key: Key,
        /// What its claim was told.
        decision: Box<Decision>,
    },
}

impl Semel {
    /// Claims all keys or none. They are claimed in the order of their digests, so two callers with the same keys
    /// never hold one each; the first that does not run gives back the ones before it and is the answer.
    pub async fn claim_all(&self, claims: Vec<Claim>) -> Result<ClaimedAll> {
        let mut claims: Vec<(usize, Claim)> = claims.into_iter().enumerate().collect();
        claims.sort_by_key(|(_, claim)| claim.key.id());
        if claims.windows(2).any(|pair| matches!(pair, [(_, a), (_, b)] if a.key == b.key)) {
            return Err(Error::invalid("claim_all was given one key twice; give each key once"));
        }
        let mut taken = Taken(Vec::with_capacity(claims.len()));
        for (place, claim) in claims {
            let key = claim.key.clone();
            match self.claim(claim).await {
                Ok(Decision::Run(permit)) => taken.0.push((place, permit)),
                Ok(decision) => {
                    taken.give_back().await;
                    return Ok(ClaimedAll::Refused { key, decision: Box::new(decision) });
                }
                Err(error) => {
                    taken.give_back().await;
                    return Err(error);
                }
            }
        }
        Ok(ClaimedAll::Run(taken.into_permits()))
    }
}

/// Permits of a `claim_all` that is not through yet. If its caller goes away, they were never started.
struct Taken(Vec<(usize, Permit)>);

impl Taken {
    async fn give_back(mut self) {
        // Released one after the other, so that the caller may claim them again when this returns.
        while let Some((_, permit)) = self.0.pop() {
            if let Err(error) = permit.release("not all keys were free").await {
                tracing::debug!(key = %permit.key().id().short(), %error, "semel: the lease decides");
            }
        }
    }

    fn into_permits(mut self) -> Vec<Permit> {
        let mut taken = std::mem::take(&mut self.0);
        taken.sort_by_key(|(place, _)| *place);
        taken.into_iter().map(|(_, permit)| permit).collect()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        for (_, permit) in self.0.drain(..) {
            permit.disown();
        }
    }
}
