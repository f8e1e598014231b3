//! Many clients of one store at the same time, over many keys, judged key by key.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use semel::machine::claim::{Ask, Claimed, Reentry};
use semel::machine::settle::Resolution;
use semel::record::PermitId;
use semel::store::Store;
use semel::{Error, Fingerprint, Key, Lapse, Outcome, Result};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::recorder::{Asked, Event, Recorder, Told};
use super::search::check;
use super::verdict::Report;
use crate::sample;

/// How many keys all clients meet at, at a time: few enough that they get in each other's way.
const KEYS_AT_A_TIME: usize = 4;
/// After how many operations they go on to the next keys. What is judged together stays short, and is judged soon.
const OPERATIONS_AT_A_TIME: usize = 128;

/// Has every client ask at random, all at the same time, until `operations` are made, and judges what they were told.
///
/// Each client asks through its own handle to the one store, and these may be connections of their own. What a client
/// asks comes from the seed; when it is answered comes from the store, so no two histories are the same.
pub async fn concurrent_history(clients: &[Arc<dyn Store>], seed: u64, operations: usize) -> Report {
    let mut report = Report::new(seed);
    let stage = match Stage::set(operations) {
        Ok(stage) => Arc::new(stage),
        Err(error) => return report.failed(error.to_string()),
    };
    let started_at = Instant::now();
    let start = Arc::new(Barrier::new(clients.len()));
    let mut lives = JoinSet::new();
    for (number, store) in clients.iter().enumerate() {
        let (stage, store, start) = (Arc::clone(&stage), Arc::clone(store), Arc::clone(&start));
        let client = Client::new(seed, number);
        lives.spawn(async move {
            start.wait().await;
            live(number, client, &*store, &stage).await
        });
    }
    while let Some(errors) = lives.join_next().await {
        match errors {
            Ok(errors) => errors.iter().for_each(|error| report.refused(error)),
            Err(error) => report = report.failed(format!("a client broke off: {error}")),
        }
    }
    report.ran_for = started_at.elapsed();
    let histories: Vec<_> = stage.keys.iter().map(|(_, recorder)| recorder.events()).collect();
    judge(report, histories).await
}

/// The keys that are asked for, and how many operations are made.
struct Stage {
    keys: Vec<(Key, Recorder)>,
    made: AtomicUsize,
    operations: usize,
}

impl Stage {
    fn set(operations: usize) -> Result<Self> {
        let count = operations.div_ceil(OPERATIONS_AT_A_TIME) * KEYS_AT_A_TIME;
        let keys =
            (0..count).map(|_| Ok((sample::key("history")?, Recorder::new()))).collect::<Result<_>>()?;
        Ok(Self { keys, made: AtomicUsize::new(0), operations })
    }

    /// The places of the keys that everybody is at; `None` when all is done.
    fn places(&self) -> Option<Range<usize>> {
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        let first = made / OPERATIONS_AT_A_TIME * KEYS_AT_A_TIME;
        (made < self.operations).then_some(first..first + KEYS_AT_A_TIME)
    }
}

/// One client from its first ask to its last, and the errors that it met.
async fn live(number: usize, mut client: Client, store: &dyn Store, stage: &Stage) -> Vec<Error> {
    let mut errors = Vec::new();
    while let Some(places) = stage.places() {
        let place = client.choose(places);
        let Some((key, recorder)) = stage.keys.get(place) else { break };
        if let Some(pause) = client.pause() {
            tokio::time::sleep(pause).await;
        }
        let asked = client.next(place, key);
        match recorder.ask(number, store, key, asked.clone()).await {
            Ok(answer) => client.hear(place, &asked, Some(answer.told)),
            Err(error) => {
                client.hear(place, &asked, None);
                errors.push(error);
            }
        }
        // A store in this process answers at once; the others must get a turn all the same.
        tokio::task::yield_now().await;
    }
    errors
}

/// Looks for an order of each key's events. The search is work for a processor, so it has a thread of its own.
async fn judge(mut report: Report, histories: Vec<Vec<Event>>) -> Report {
    let started_at = Instant::now();
    let judged = tokio::task::spawn_blocking(move || {
        for events in histories.iter().filter(|events| !events.is_empty()) {
            report.add(events, check(events));
        }
        report
    });
    match judged.await {
        Ok(mut report) => {
            report.judged_for = started_at.elapsed();
            report
        }
        Err(error) => Report::new(0).failed(format!("the judge broke off: {error}")),
    }
}

/// A store whose reads are answered by another.
///
/// For negative controls: a copy that lags behind must be found out by its history, or the history proves nothing.
#[derive(Clone)]
pub struct ReadsElsewhere {
    writes: Arc<dyn Store>,
    reads: Arc<dyn Store>,
}

impl ReadsElsewhere {
    /// Writes to the one and reads from the other.
    pub fn new(writes: Arc<dyn Store>, reads: Arc<dyn Store>) -> Self {
        Self { writes, reads }
    }
}

impl Store for ReadsElsewhere {
    crate::delegate!(writes: swap, sweep);
    crate::delegate!(reads: load, scan);
}

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
        Outcome::success(self.rng.random::<[u8; 8]>().to_vec())
    }

    fn permit_id(&mut self) -> PermitId {
        PermitId::new(self.rng.random())
    }

    fn happens(&mut self, times: u32, of: u32) -> bool {
        self.rng.random_ratio(times, of)
    }
}
