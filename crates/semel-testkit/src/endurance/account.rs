//! What callers know of one key: what they asked, and what they were told.

use semel::record::PermitId;
use semel::{Key, Outcome};

/// What callers know of one key.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) key: Key,
    /// The permits that somebody asked for and that may have been granted.
    pub(super) asked: Vec<PermitId>,
    /// The grants that were heard.
    pub(super) grants: Vec<Grant>,
    /// The ends that were asked for and may have taken.
    pub(super) settling: Vec<(PermitId, Ending)>,
    /// The ends that were acknowledged.
    pub(super) settled: Vec<(PermitId, Ending)>,
    /// The outcomes that were replayed.
    pub(super) replayed: Vec<Outcome>,
    /// What nobody should have been told.
    pub(super) odd: Vec<String>,
}

/// A grant that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) permit_id: PermitId,
    pub(super) attempt: u32,
    pub(super) fence: u64,
}

/// How a run was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Done(Outcome),
    Released,
}

impl Account {
    pub(super) fn new(key: &Key) -> Self {
        Self {
            key: key.clone(),
            asked: Vec::new(),
            grants: Vec::new(),
            settling: Vec::new(),
            settled: Vec::new(),
            replayed: Vec::new(),
            odd: Vec::new(),
        }
    }

    /// The outcomes that were acknowledged.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.settled.iter().filter_map(|(_, ending)| match ending {
            Ending::Done(outcome) => Some(outcome),
            Ending::Released => None,
        })
    }

    /// Whether somebody wanted to end that run like this.
    pub(super) fn may_have_ended(&self, permit_id: PermitId, ending: &Ending) -> bool {
        self.settling.iter().any(|(of, how)| *of == permit_id && how == ending)
    }

    /// Whether that run is known to have ended like this.
    pub(super) fn has_ended(&self, permit_id: PermitId, ending: &Ending) -> bool {
        self.settled.iter().any(|(of, how)| *of == permit_id && how == ending)
    }

    /// The last grant that was heard.
    pub(super) fn last_grant(&self) -> Option<&Grant> {
        self.grants.iter().max_by_key(|grant| grant.attempt)
    }

    /// How many answers were acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        (self.grants.len() + self.settled.len()) as u64
    }
}
