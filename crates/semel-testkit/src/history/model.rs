//! The record as the machine would have it, event by event.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::codec;
use semel::machine::claim::{Claimed, Recorded, claim, record_once};
use semel::machine::settle::{complete, release, renew, resolve};
use semel::machine::{Ruling, Write};
use semel::record::{Record, State, Version};
use sha2::{Digest, Sha256};

use super::moment::Moment;
use super::moment::{self, Term};
use super::recorder::{Asked, Event, Seen, Told};

/// What the model stamps. The true numbers are kept beside the record, because not all of them are known.
const STAMP: Version = Version::new(1);

/// The record after some events, and what is known of its numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Model {
    term: Option<Term>,
    /// The version that the record is at, if somebody saw it.
    version: Option<Version>,
    /// The fence of the last grant, if somebody saw it.
    fence: Option<Version>,
    /// The greatest version that was seen so far.
    version_max: Version,
    /// The greatest fence that was seen so far.
    fence_max: Version,
    /// When the store last stamped, at the earliest.
    pub(super) latest: Timestamp,
    /// The model without the last write, if its reply was lost and no answer since tells the two apart.
    unseen: Option<Box<Self>>,
}

/// What an event does to the model.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) next: Model,
    /// Whether the record was written.
    pub(super) writes: bool,
}

impl Model {
    /// The models that there may be after the event, if it came at that moment; or why the machine would not have
    /// answered like that.
    pub(super) fn after(&self, event: &Event, moment: Moment) -> Result<Vec<Step>, String> {
        let mut steps = self.read_after(event, moment)?;
        if let Some(without) = &self.unseen {
            let others = without.after(event, moment).unwrap_or_default();
            // A lost write that nobody saw before it was written over may as well not have happened. Orders with
            // it and without it would double with every lost reply.
            steps.retain(|step| !step.writes || !others.iter().any(|other| other.next.is_as(&step.next)));
            let untold = others.iter().any(|other| !other.writes && other.next == **without);
            for step in steps.iter_mut().filter(|step| !step.writes && untold) {
                step.next.unseen.clone_from(&self.unseen);
            }
        }
        for step in steps.iter_mut().filter(|step| step.writes && event.answer.is_none()) {
            step.next.unseen = Some(Box::new(self.clone()));
        }
        Ok(steps)
    }

    /// The same, for each way in which a record whose stamp nobody saw may be read.
    fn read_after(&self, event: &Event, moment: Moment) -> Result<Vec<Step>, String> {
        let seen = Self { unseen: None, ..self.clone() };
        let Some(term) = &seen.term else {
            return seen.step(event, moment).map(|step| vec![step]);
        };
        let mut steps = Vec::new();
        let mut why = Err(String::new());
        for mut reading in term.readings(moment.now).into_iter().rev() {
            // The moment of an answer that was lost is a guess, which says nothing about the stamp before it.
            if event.now.is_some() {
                reading.narrow(moment.now);
            }
            let read = Self { term: Some(reading), ..seen.clone() };
            match read.step(event, moment) {
                Ok(step) => steps.push(step),
                Err(reason) => why = Err(reason),
            }
        }
        if steps.is_empty() { why } else { Ok(steps) }
    }

    fn is_as(&self, other: &Self) -> bool {
        let seen = |model: &Self| Self { unseen: None, ..model.clone() };
        seen(self) == seen(other)
    }

    fn step(&self, event: &Event, moment: Moment) -> Result<Step, String> {
        if moment.now < self.latest {
            return Err(format!("it was decided at {}, before the record was stamped", moment.now));
        }
        let (told, write) = rule(&event.asked, self.record(), moment.now);
        let Some(answer) = &event.answer else {
            return self.apply(&Seen::default(), write, moment);
        };
        if !told.agrees_with(answer.told) {
            return Err(format!("the machine says {told:?}"));
        }
        let step = self.apply(&answer.seen, write, moment)?;
        step.next.agrees_with(&answer.seen, told)?;
        Ok(step)
    }

    fn record(&self) -> Option<&Record> {
        self.term.as_ref().map(|term| &term.record)
    }

    fn apply(&self, seen: &Seen, write: Option<Write>, moment: Moment) -> Result<Step, String> {
        let mut next = self.clone();
        let Some(write) = write else {
            next.learn_version(seen, moment.now)?;
            next.learn_fence(seen.fence)?;
            return Ok(Step { next, writes: false });
        };
        let granted = leaves_fence_open(&write);
        next.version = seen.version.or(seen.fence.filter(|_| granted));
        if let Some(version) = next.version {
            grown("version", version, self.version_max)?;
            next.version_max = version;
        }
        if granted {
            next.fence = None;
        }
        next.learn_fence(seen.fence.or(seen.version.filter(|_| granted)))?;
        let is_open = moment::is_open(write.next.unstamped());
        let record = Arc::unwrap_or_clone(write.next.stamp(STAMP, moment.stamped_from));
        next.term = Some(match &self.term {
            Some(term) if !is_open => term.carried_over(record),
            Some(_) | None => Term::new(record, moment.stamped_until),
        });
        next.latest = self.latest.max(moment.stamped_from);
        Ok(Step { next, writes: true })
    }

    /// An answer that wrote nothing shows the version that it found.
    fn learn_version(&mut self, seen: &Seen, now: Timestamp) -> Result<(), String> {
        let live = self.record().is_some_and(|record| record.is_live(now));
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

    fn learn_fence(&mut self, seen: Option<Version>) -> Result<(), String> {
        match (seen, self.fence) {
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
        let Some(record) = self.record() else { return Ok(()) };
        let ran = told == Told::Claimed(Claimed::Run);
        if ran && seen.attempt.is_some_and(|attempt| attempt != record.attempt) {
            return Err(format!("the attempt is {}, and it saw {:?}", record.attempt, seen.attempt));
        }
        let replay = matches!(
            told,
            Told::Claimed(Claimed::Replay)
                | Told::Recorded(Recorded::Refused(Claimed::Replay))
                | Told::Got(Some(_))
        );
        if replay && seen.outcome.is_some() && seen.outcome.as_ref() != record.outcome() {
            return Err(format!("the outcome is {:?}, and it saw {:?}", record.outcome(), seen.outcome));
        }
        Ok(())
    }

    /// From when on the machine would judge the record otherwise.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = Timestamp> {
        self.term.iter().flat_map(Term::deadlines)
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
        if let Some(term) = &self.term {
            digest.update(term.began_until().as_micros().to_le_bytes());
            digest.update(codec::encode(&term.record).unwrap_or_default());
        }
        if let Some(without) = &self.unseen {
            digest.update(without.digest(&[]));
        }
        digest.finalize().into()
    }

    /// The record in words for people.
    pub(super) fn describe(&self) -> String {
        match self.record() {
            None => "there was no record".into(),
            Some(record) => format!(
                "the record was {}, attempt {}, at version {:?}, last stamped at {}",
                record.state.kind().as_str(),
                record.attempt,
                self.version.map(Version::get),
                self.latest
            ),
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
            (Told::Got(live.map(|record| record.state.kind())), None)
        }
    }
}

/// Whether the store fills in the fence: that is what a grant is.
fn leaves_fence_open(write: &Write) -> bool {
    match &write.next.unstamped().state {
        State::Running(running) => running.grant.fence == Version::default(),
        State::Done(done) => done.grant.fence == Version::default(),
        State::Released(_) | State::Held(_) => false,
    }
}

fn grown(what: &str, seen: Version, greatest: Version) -> Result<(), String> {
    if seen > greatest {
        return Ok(());
    }
    Err(format!("{what} {} came after {}, and must have grown", seen.get(), greatest.get()))
}
