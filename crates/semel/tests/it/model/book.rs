//! The real machine behind page numbers: each distinct question is asked once, since it is pure.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use semel::clock::Timestamp;
use semel::codec::encode;
use semel::machine::claim::{self, Claimed, Probe, Reentry, claim};
use semel::machine::settle::{
    Completed, ReleaseAnswer, Renewed, Resolution, Resolved, complete, release, renew, resolve,
};
use semel::machine::{Ruling, Write};
use semel::record::{Keep, PermitId, Record, Version};
use semel::{Fingerprint, Key, Lapse, Outcome};

use super::state::{Answer, Ask, NEVER, Page};

const TICK_MICROS: u64 = 10;
pub(super) const LEASE_TICKS: u8 = 2;
pub(super) const RETENTION_TICKS: u8 = 1;

/// The person who resolves.
pub(super) const PERSON: u8 = 99;

pub(super) struct Book {
    key: Key,
    lapse: Lapse,
    records: Vec<Record>,
    record_pages: HashMap<Vec<u8>, Page>,
    drafts: Vec<Write>,
    draft_pages: HashMap<Vec<u8>, Page>,
    rulings: HashMap<(Ask, u8, Page, u8), (Answer, Page)>,
    stamps: HashMap<(Page, u8, u8), Page>,
}

fn moment(tick: u8) -> Timestamp {
    Timestamp::from_micros((u64::from(tick) + 1) * TICK_MICROS)
}

/// The first tick at or after a moment.
pub(super) fn tick(moment: Timestamp) -> u8 {
    u8::try_from(moment.as_micros().div_ceil(TICK_MICROS) - 1).unwrap()
}

fn ticks(count: u8) -> Duration {
    Duration::from_micros(u64::from(count) * TICK_MICROS)
}

pub(super) fn outcome_of(permit: u8) -> Outcome {
    Outcome::success(vec![permit; 3]).reference("made by", permit.to_string())
}

pub(super) fn permit_of(permit_id: PermitId) -> u8 {
    u8::try_from(permit_id.get()).unwrap()
}

impl Book {
    pub(super) fn new(lapse: Lapse) -> Self {
        Self {
            key: Key::new("charge", "order-7").unwrap(),
            lapse,
            records: Vec::new(),
            record_pages: HashMap::new(),
            drafts: Vec::new(),
            draft_pages: HashMap::new(),
            rulings: HashMap::new(),
            stamps: HashMap::new(),
        }
    }

    pub(super) fn record(&self, page: Page) -> Option<&Record> {
        self.records.get(usize::from(page).checked_sub(1)?)
    }

    /// The version of the record on a page; zero for none.
    pub(super) fn version(&self, page: Page) -> u8 {
        self.record(page).map_or(0, |record| u8::try_from(record.version.get()).unwrap())
    }

    pub(super) fn is_live(&self, page: Page, now: u8) -> bool {
        self.record(page).is_some_and(|record| record.is_live(moment(now)))
    }

    /// What the machine rules: the answer, and the page of the draft to write first.
    pub(super) fn rule(&mut self, ask: Ask, permit: u8, found: Page, now: u8) -> (Answer, Page) {
        if let Some(known) = self.rulings.get(&(ask, permit, found, now)) {
            return *known;
        }
        let Ruling { answer, write } = self.ask_the_machine(ask, permit, found, now);
        let page = write.map_or(0, |write| self.draft_page(write));
        self.rulings.insert((ask, permit, found, now), (answer, page));
        (answer, page)
    }

    fn ask_the_machine(&self, ask: Ask, permit: u8, found: Page, now: u8) -> Ruling<Answer> {
        let (found, now) = (self.record(found), moment(now));
        let (permit_id, outcome) = (PermitId::new(u128::from(permit)), outcome_of(permit));
        match ask {
            Ask::Claim => answered(claim(found, &self.claim(permit), now), |told| match told {
                Claimed::Run => Answer::Run,
                Claimed::Replay => Answer::Replay,
                Claimed::Busy { .. } => Answer::Busy,
                Claimed::Mismatch => Answer::Mismatch,
                Claimed::Held | Claimed::Probe => Answer::Held,
            }),
            Ask::Complete => answered(complete(found, permit_id, &outcome, now), |told| match told {
                Completed::Done => Answer::Done,
                Completed::Lost => Answer::Lost,
            }),
            Ask::Release => answered(release(found, permit_id, "gave up", now), |told| match told {
                ReleaseAnswer::Released => Answer::Released,
                ReleaseAnswer::NotHolding => Answer::Lost,
            }),
            Ask::Renew => answered(renew(found, permit_id, ticks(LEASE_TICKS), now), |told| match told {
                Renewed::Renewed => Answer::Renewed,
                Renewed::Done => Answer::Done,
                Renewed::Lost => Answer::Lost,
            }),
            Ask::ResolveDone => {
                answered(resolve(found, permit_id, &Resolution::Done(outcome), now), resolved)
            }
            Ask::ResolveRelease => {
                let resolution = Resolution::Release { reason: "it never left".into() };
                answered(resolve(found, permit_id, &resolution, now), resolved)
            }
        }
    }

    fn claim(&self, permit: u8) -> claim::Ask {
        claim::Ask {
            key: self.key.clone(),
            fingerprint: Some(Fingerprint::from_bytes([7; 32])),
            label: None,
            permit_id: PermitId::new(u128::from(permit)),
            owner: "worker".into(),
            reentry: Reentry::Refused,
            lease: ticks(LEASE_TICKS),
            retention: ticks(RETENTION_TICKS),
            lapse: self.lapse,
            attempts_max: None,
            first_event: None,
            probe: Probe::None,
        }
    }

    /// The record that a draft becomes, and from when on it may be swept.
    pub(super) fn stamp(&mut self, draft: Page, version: u8, now: u8) -> (Page, u8) {
        let Write { next, keep } = self.drafts[usize::from(draft) - 1].clone();
        let sweep_at = keep.until(moment(now)).map_or(NEVER, tick);
        if let Some(known) = self.stamps.get(&(draft, version, now)) {
            return (*known, sweep_at);
        }
        let record = next.stamp(Version::new(u64::from(version)), moment(now));
        let page = self.record_page(Arc::unwrap_or_clone(record));
        self.stamps.insert((draft, version, now), page);
        (page, sweep_at)
    }

    fn record_page(&mut self, record: Record) -> Page {
        let records = &mut self.records;
        *self.record_pages.entry(encode(&record).unwrap()).or_insert_with(|| {
            records.push(record);
            Page::try_from(records.len()).unwrap()
        })
    }

    fn draft_page(&mut self, write: Write) -> Page {
        let mut bytes = encode(write.next.unstamped()).unwrap();
        if let Keep::For(span) = write.keep {
            bytes.extend(span.as_micros().to_le_bytes());
        }
        let drafts = &mut self.drafts;
        *self.draft_pages.entry(bytes).or_insert_with(|| {
            drafts.push(write);
            Page::try_from(drafts.len()).unwrap()
        })
    }
}

fn answered<A>(ruling: Ruling<A>, answer: impl FnOnce(A) -> Answer) -> Ruling<Answer> {
    Ruling { answer: answer(ruling.answer), write: ruling.write }
}

fn resolved(told: Resolved) -> Answer {
    match told {
        Resolved::Resolved => Answer::Resolved,
        Resolved::NotHeld => Answer::Lost,
    }
}
