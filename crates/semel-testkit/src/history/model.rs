//! The record as the machine would have it, event by event.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::codec;
use semel::machine::claim::{Claimed, Recorded, claim, record_once};
use semel::machine::settle::{complete, release, renew, resolve};
use semel::machine::{Ruling, Write};
use semel::record::{Record, State, Version};
use sha2::{Digest, Sha256};

use super::event::{Asked, Event, Seen, Told};

/// What the model stamps. The true numbers are kept beside the record, because not all of them are known.
const STAMP: Version = Version::new(1);

/// The record after some events, and what is known of its numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Model {
    record: Option<Record>,
    /// The version that the record is at, if somebody saw it.
    version: Option<Version>,
    /// The fence of the last grant, if somebody saw it.
    fence: Option<Version>,
    /// The greatest version that was seen so far.
    version_max: Version,
    /// The greatest fence that was seen so far.
    fence_max: Version,
    /// The last moment that the store stamped.
    pub(super) latest: Timestamp,
}

/// What an event does to the model.
pub(super) struct Step {
    pub(super) next: Model,
    /// Whether the record was written.
    pub(super) writes: bool,
}

impl Model {
    /// The model after the event, if it was decided at `now`; or why the machine would not have said that.
    pub(super) fn after(&self, event: &Event, now: Timestamp) -> Result<Step, String> {
        let (told, write) = rule(&event.asked, self.record.as_ref(), now);
        let Some(answer) = &event.answer else {
            return self.apply(&Seen::default(), write, now);
        };
        if !told.agrees_with(answer.told) {
            return Err(format!("the machine says {told:?}"));
        }
        let step = self.apply(&answer.seen, write, now)?;
        step.next.agrees_with(&answer.seen, told)?;
        Ok(step)
    }

    fn apply(&self, seen: &Seen, write: Option<Write>, now: Timestamp) -> Result<Step, String> {
        let mut next = self.clone();
        let Some(write) = write else {
            next.learn_version(seen, now)?;
            next.learn_fence(seen)?;
            return Ok(Step { next, writes: false });
        };
        let grants = leaves_fence_open(&write);
        next.version = seen.version.or(if grants { seen.fence } else { None });
        if let Some(version) = next.version {
            grown("version", version, self.version_max)?;
            next.version_max = version;
        }
        if grants {
            next.fence = None;
        }
        let written_at = seen.written_at.unwrap_or(now);
        next.record = Some(write.next.stamp(STAMP, written_at));
        next.latest = self.latest.max(written_at);
        next.learn_fence(&Seen {
            fence: seen.fence.or(if grants { seen.version } else { None }),
            ..Seen::default()
        })?;
        Ok(Step { next, writes: true })
    }

    /// An answer that wrote nothing shows the version that it found.
    fn learn_version(&mut self, seen: &Seen, now: Timestamp) -> Result<(), String> {
        let live = self.record.as_ref().is_some_and(|record| record.is_live(now));
        match (live, seen.version, self.version) {
            (true, Some(seen), Some(known)) if seen != known => {
                Err(format!("version {} is what it saw, and the record is at {}", seen.get(), known.get()))
            }
            (true, Some(seen), None) => {
                grown("version", seen, self.version_max)?;
                (self.version, self.version_max) = (Some(seen), seen);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn learn_fence(&mut self, seen: &Seen) -> Result<(), String> {
        match (seen.fence, self.fence) {
            (Some(seen), Some(known)) if seen != known => {
                Err(format!("fence {} is what it saw, and the run has {}", seen.get(), known.get()))
            }
            (Some(seen), None) => {
                grown("fence", seen, self.fence_max)?;
                (self.fence, self.fence_max) = (Some(seen), seen);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn agrees_with(&self, seen: &Seen, told: Told) -> Result<(), String> {
        let Some(record) = &self.record else { return Ok(()) };
        let ran = told == Told::Claimed(Claimed::Run);
        if ran && seen.attempt.is_some_and(|attempt| attempt != record.attempt) {
            return Err(format!("the attempt is {}, and it saw {:?}", record.attempt, seen.attempt));
        }
        let replay = matches!(
            told,
            Told::Claimed(Claimed::Replay)
                | Told::Recorded(Recorded::Refused(Claimed::Replay))
                | Told::Got(_)
        );
        if replay && seen.outcome.is_some() && seen.outcome.as_ref() != record.outcome() {
            return Err(format!("the outcome is {:?}, and it saw {:?}", record.outcome(), seen.outcome));
        }
        Ok(())
    }

    /// From when on the machine would judge the record otherwise.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = Timestamp> {
        let lease_until = match self.record.as_ref().map(|record| &record.state) {
            Some(State::Running(running)) => Some(running.lease_until()),
            _ => None,
        };
        let live_until = self.record.as_ref().and_then(Record::live_until);
        lease_until.into_iter().chain(live_until)
    }

    /// A digest of all that matters for what comes next.
    pub(super) fn digest(&self, taken: &[u64]) -> [u8; 32] {
        let mut digest = Sha256::new();
        for word in taken {
            digest.update(word.to_le_bytes());
        }
        for version in [self.version, self.fence, Some(self.version_max), Some(self.fence_max)] {
            digest.update(version.map_or(u64::MAX, Version::get).to_le_bytes());
        }
        digest.update(self.latest.as_micros().to_le_bytes());
        if let Some(Ok(bytes)) = self.record.as_ref().map(codec::encode) {
            digest.update(bytes);
        }
        digest.finalize().into()
    }

    /// The record in words for people.
    pub(super) fn describe(&self) -> String {
        match &self.record {
            None => "there was no record".into(),
            Some(record) => format!(
                "the record was {}, attempt {}, at version {:?}, last stamped at {}",
                record.state.word().as_str(),
                record.attempt,
                self.version.map(Version::get),
                self.latest
            ),
        }
    }
}

impl Asked {
    /// The lease that a write of this starts.
    pub(super) fn lease(&self) -> Option<Duration> {
        match self {
            Self::Claim(ask) => Some(ask.lease),
            Self::Renew { lease, .. } => Some(*lease),
            Self::RecordOnce(..)
            | Self::Complete { .. }
            | Self::Release { .. }
            | Self::Resolve { .. }
            | Self::Get => None,
        }
    }
}

/// What the machine says to it.
pub(super) fn rule(asked: &Asked, found: Option<&Record>, now: Timestamp) -> (Told, Option<Write>) {
    fn told<A>(ruling: Ruling<A>, told: fn(A) -> Told) -> (Told, Option<Write>) {
        (told(ruling.answer), ruling.write)
    }
    match asked {
        Asked::Claim(ask) => told(claim(found, ask, now), Told::Claimed),
        Asked::RecordOnce(ask, outcome) => told(record_once(found, ask, outcome, now), Told::Recorded),
        Asked::Complete { permit_id, outcome } => {
            told(complete(found, *permit_id, outcome, now), Told::Completed)
        }
        Asked::Release { permit_id, reason } => told(release(found, *permit_id, reason, now), Told::Released),
        Asked::Renew { permit_id, lease } => told(renew(found, *permit_id, *lease, now), Told::Renewed),
        Asked::Resolve { permit_id, resolution } => {
            told(resolve(found, *permit_id, resolution, now), Told::Resolved)
        }
        Asked::Get => {
            let live = found.filter(|record| record.is_live(now));
            (Told::Got(live.map(|record| record.state.word())), None)
        }
    }
}

/// Whether the store fills in the fence: that is what a grant is.
fn leaves_fence_open(write: &Write) -> bool {
    match &write.next.unstamped().state {
        State::Running(running) => running.fence == Version::default(),
        State::Done(done) => done.fence == Version::default(),
        State::Released(_) | State::Held(_) => false,
    }
}

fn grown(what: &str, seen: Version, greatest: Version) -> Result<(), String> {
    if seen > greatest {
        return Ok(());
    }
    Err(format!("{what} {} came after {}, and must have grown", seen.get(), greatest.get()))
}
