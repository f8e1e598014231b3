//! Many clients of one store at the same time, over many keys, judged key by key.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use semel::record::Record;
use semel::store::{Page, Reply, Scan, Store, Swap, SwapReply, Swept};
use semel::{Error, Key, RecordId, Result};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client::Client;
use super::event::Event;
use super::recorder::Recorder;
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
        match recorder.ask(number, store, key.id(), asked.clone()).await {
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
    fn swap(&self, batch: Vec<Swap>) -> Reply<Vec<SwapReply>> {
        self.writes.swap(batch)
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Option<Record>>> {
        self.reads.load(ids)
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.writes.sweep(limit)
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.reads.scan(scan)
    }
}
