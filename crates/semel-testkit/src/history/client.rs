//! What one of many clients asks, at random: like a caller that knows only the permits that it was given.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use semel::machine::claim::{Ask, Claimed, Reentry};
use semel::machine::settle::Resolution;
use semel::record::PermitId;
use semel::{Fingerprint, Key, Lapse, Outcome};

use super::event::{Asked, Told};
use crate::sample;

/// Leases that lapse while the others go on, and one that does not.
const LEASES: [Duration; 4] =
    [Duration::from_millis(1), Duration::from_millis(4), Duration::from_millis(15), sample::LONG];
/// How long a record is remembered: some are forgotten before the history is over.
const RETENTIONS: [Duration; 3] = [Duration::from_millis(1), Duration::from_millis(10), sample::LONG];

/// One client, and the last permit that it asked for.
pub(super) struct Client {
    rng: StdRng,
    owner: Arc<str>,
    last: Option<(usize, PermitId, Told)>,
}

impl Client {
    pub(super) fn new(seed: u64, number: usize) -> Self {
        let stream = u64::try_from(number).unwrap_or(u64::MAX);
        let rng = StdRng::seed_from_u64(seed.wrapping_mul(1_000).wrapping_add(stream));
        // Two clients share a name, so that a reentrant claim takes over from somebody else too.
        Self { rng, owner: format!("client-{}", number / 2).into(), last: None }
    }

    /// Which of the keys to ask for: mostly the one that this client was told to run.
    pub(super) fn choose(&mut self, keys: std::ops::Range<usize>) -> usize {
        let (any, stays) = (self.rng.random_range(keys), self.happens(3, 4));
        match self.last {
            Some((place, _, Told::Claimed(Claimed::Run))) if stays => place,
            _ => any,
        }
    }

    /// How long to think first. Some do, or no lease would ever lapse on a fast store.
    pub(super) fn pause(&mut self) -> Option<Duration> {
        self.happens(1, 12).then(|| Duration::from_millis(self.rng.random_range(1..6)))
    }

    /// What to ask of the key at that place.
    pub(super) fn next(&mut self, place: usize, key: &Key) -> Asked {
        let held = self.last.filter(|(of, ..)| *of == place);
        let ran = held.is_some_and(|(.., told)| told == Told::Claimed(Claimed::Run));
        let permit_id = held.map_or_else(|| self.permit_id(), |(_, permit_id, _)| permit_id);
        match (ran, self.rng.random_range(0..16)) {
            (true, 0..4) | (false, 1) => Asked::Complete { permit_id, outcome: self.outcome() },
            (true, 4..6) | (false, 0) => Asked::Renew { permit_id, lease: self.lease() },
            (true, 6..12) => Asked::Release { permit_id, reason: "later".into() },
            (false, 2) => Asked::Resolve { permit_id: self.permit_id(), resolution: self.resolution() },
            (false, 3) => {
                let permit_id = self.permit_id();
                Asked::RecordOnce(Box::new(self.ask(key, permit_id)), self.outcome())
            }
            // Reads are part of it: without them, nobody would notice that they come from yesterday.
            (true, _) | (false, 4..8) => Asked::Get,
            (false, 8) => Asked::Claim(Box::new(self.ask(key, permit_id))),
            (false, _) => {
                let permit_id = self.permit_id();
                Asked::Claim(Box::new(self.ask(key, permit_id)))
            }
        }
    }

    /// What was told, or that nobody heard: then the permit may have been granted all the same.
    pub(super) fn hear(&mut self, place: usize, asked: &Asked, told: Option<Told>) {
        let told = told.unwrap_or(Told::Claimed(Claimed::Run));
        match asked {
            Asked::Claim(ask) => self.last = Some((place, ask.permit_id, told)),
            Asked::Complete { .. } | Asked::Release { .. } => self.last = None,
            Asked::RecordOnce(..) | Asked::Renew { .. } | Asked::Resolve { .. } | Asked::Get => {}
        }
    }

    fn ask(&mut self, key: &Key, permit_id: PermitId) -> Ask {
        let reentry = if self.happens(1, 5) { Reentry::Allowed } else { Reentry::Refused };
        let fingerprint = self.happens(1, 8).then(|| Fingerprint::of_parts(["another request"]));
        Ask {
            permit_id,
            owner: Arc::clone(&self.owner),
            reentry,
            fingerprint: fingerprint.or_else(|| Some(Fingerprint::of_parts(["the request"]))),
            lease: self.lease(),
            retention: self.one_of(&RETENTIONS),
            lapse: if self.happens(2, 3) { Lapse::Rerun } else { Lapse::Hold },
            attempts_max: self.happens(1, 4).then_some(3),
            ..sample::ask(key)
        }
    }

    fn resolution(&mut self) -> Resolution {
        if self.happens(1, 4) {
            return Resolution::Done(self.outcome());
        }
        Resolution::Release { reason: "a person said so".into() }
    }

    fn lease(&mut self) -> Duration {
        self.one_of(&LEASES)
    }

    fn one_of(&mut self, spans: &[Duration]) -> Duration {
        let at = self.rng.random_range(0..spans.len());
        spans.get(at).copied().unwrap_or(sample::LONG)
    }

    fn outcome(&mut self) -> Outcome {
        Outcome::success(self.rng.random::<[u8; 8]>())
    }

    fn permit_id(&mut self) -> PermitId {
        PermitId::new(self.rng.random())
    }

    fn happens(&mut self, times: u32, of: u32) -> bool {
        self.rng.random_ratio(times, of)
    }
}
