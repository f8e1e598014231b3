//! Sweepers and claimers at the same time: how long claims take meanwhile, and whether the right records are gone.
//!
//! - [`sweep_while_claiming`]: puts records past their keep into a store, claims without and with sweepers, and looks.
//! - [`Report`]: what was seen.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use semel::record::Keep;
use semel::store::{Store, Swap, SwapReply};
use semel::{Claim, Decision, Error, ErrorKind, Outcome, RecordId, Result, Semel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::sample;

/// How long the records that are to be swept must be kept.
const KEEP: Duration = Duration::from_millis(1);
/// How many records must outlive the sweepers.
const LASTING: usize = 1_000;
/// How long a sweeper may take in all before it is taken for stuck.
const PATIENCE: Duration = Duration::from_mins(10);

/// Puts so many records past their keep into a store, has claimers at work alone for a time, and then together with
/// sweepers until nothing is left to sweep.
///
/// Each sweeper and each claimer has its own handle to the one store; nobody else may sweep it meanwhile.
pub async fn sweep_while_claiming(
    sweepers: &[Arc<dyn Store>],
    claimers: &[Arc<dyn Store>],
    expired: usize,
    quiet: Duration,
) -> Result<Report> {
    let mut report = Report { expired, ..Report::default() };
    let Some(store) = claimers.first() else { return Ok(report) };
    let started_at = Instant::now();
    let mut lasting = preload(store, LASTING, sample::LONG).await?;
    let past = preload(store, expired, KEEP).await?;
    report.preloaded_for = started_at.elapsed();
    // The last records are past their keep a moment from now, as every other will be.
    tokio::time::sleep(KEEP * 2).await;

    let alone = Claimers::start(claimers)?;
    tokio::time::sleep(quiet).await;
    let alone = alone.stop().await;
    report.quiet = Latency::of(alone.took);

    let together = Claimers::start(claimers)?;
    let started_at = Instant::now();
    sweep(sweepers, &mut report).await;
    report.swept_for = started_at.elapsed();
    let together = together.stop().await;
    report.sweeping = Latency::of(together.took);

    report.errors.extend(alone.errors.into_iter().chain(together.errors));
    lasting.extend(alone.done.into_iter().chain(together.done));
    report.missing = lasting.len() - present(store, &lasting).await?;
    report.left = present(store, &past).await?.max(expired.saturating_sub(report.removed));
    Ok(report)
}

/// Has all sweepers at work until each was told that nothing is left.
async fn sweep(sweepers: &[Arc<dyn Store>], report: &mut Report) {
    let mut at_work = JoinSet::new();
    for store in sweepers.iter().map(Arc::clone) {
        at_work.spawn(async move { tokio::time::timeout(PATIENCE, sweep_all(&*store)).await });
    }
    while let Some(swept) = at_work.join_next().await {
        match swept {
            Ok(Ok(Ok(removed))) => report.removed += removed,
            Ok(Ok(Err(error))) => report.errors.push(format!("a sweeper was told {error:?}")),
            Ok(Err(_)) => report.errors.push("a sweeper never came to an end".to_owned()),
            Err(error) => report.errors.push(format!("a sweeper broke off: {error}")),
        }
    }
}

async fn sweep_all(store: &dyn Store) -> Result<usize> {
    let mut removed = 0;
    loop {
        let swept = store.sweep(BATCH).await?.value;
        removed += swept.removed;
        if !swept.more_left {
            return Ok(removed);
        }
    }
}

/// How long claims took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// How many there were.
    pub claims: usize,
    /// Half of them took no longer.
    pub p50: Duration,
    /// All but one in a hundred took no longer.
    pub p99: Duration,
    /// None took longer.
    pub max: Duration,
}

impl Latency {
    fn of(mut spans: Vec<Duration>) -> Self {
        spans.sort_unstable();
        let last = spans.len().saturating_sub(1);
        let at = |percent: usize| spans.get(last * percent / 100).copied().unwrap_or_default();
        Self { claims: spans.len(), p50: at(50), p99: at(99), max: at(100) }
    }
}

/// What was seen while sweepers and claimers were at work.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many records were past their keep at the start.
    pub expired: usize,
    /// How many the sweepers say that they removed.
    pub removed: usize,
    /// How many of those that should be gone are still there.
    pub left: usize,
    /// How many are gone that should be there.
    pub missing: usize,
    /// How long it took to put the records there.
    pub preloaded_for: Duration,
    /// How long the sweepers took.
    pub swept_for: Duration,
    /// Claims while nobody swept.
    pub quiet: Latency,
    /// Claims while the sweepers were at work.
    pub sweeping: Latency,
    /// What went wrong, in words for people: a deadlock among them.
    pub errors: Vec<String>,
}

impl Report {
    /// Whether all that was past its keep is gone, all else is there, and nobody met an error.
    pub fn is_clean(&self) -> bool {
        self.left == 0 && self.missing == 0 && self.errors.is_empty()
    }

    /// How many times longer the slowest claims took while sweeping: the ratio of the p99s.
    pub fn slowdown(&self) -> f64 {
        self.sweeping.p99.as_secs_f64() / self.quiet.p99.as_secs_f64().max(f64::EPSILON)
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} claims, p50 {:?}, p99 {:?}, max {:?}", self.claims, self.p50, self.p99, self.max)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} records put there in {:?}", self.expired, self.preloaded_for)?;
        writeln!(
            f,
            "{} removed in {:?}; {} left, {} missing",
            self.removed, self.swept_for, self.left, self.missing
        )?;
        writeln!(f, "quiet:    {}", self.quiet)?;
        write!(f, "sweeping: {}, p99 {:.2} times as long", self.sweeping, self.slowdown())?;
        self.errors.iter().try_for_each(|error| write!(f, "\nerror: {error}"))
    }
}

/// How many records are put there in one round trip.
const BATCH: usize = 1_024;
/// How many round trips are on their way at the same time.
const IN_FLIGHT_MAX: usize = 4;

/// The ids of so many new records, done and kept for `keep`.
async fn preload(store: &Arc<dyn Store>, records: usize, keep: Duration) -> Result<Vec<RecordId>> {
    let mut ids = Vec::with_capacity(records);
    let mut on_their_way = JoinSet::new();
    while ids.len() < records || !on_their_way.is_empty() {
        if ids.len() < records && on_their_way.len() < IN_FLIGHT_MAX {
            let batch = batch(BATCH.min(records - ids.len()), keep)?;
            ids.extend(batch.iter().map(Swap::id));
            on_their_way.spawn(put(Arc::clone(store), batch));
        } else if let Some(put) = on_their_way.join_next().await {
            put.map_err(|error| Error::new(ErrorKind::Unknown, error.to_string()))??;
        }
    }
    Ok(ids)
}

fn batch(records: usize, keep: Duration) -> Result<Vec<Swap>> {
    let outcome = Outcome::success("done long ago");
    let swap = |_| {
        let ask = semel::machine::claim::Ask { retention: keep, ..sample::ask(&sample::key("sweeping")?) };
        let next = sample::done(&ask, &outcome)?.next;
        Ok(Swap { expected: None, next, keep: Keep::For(keep) })
    };
    (0..records).map(swap).collect()
}

async fn put(store: Arc<dyn Store>, batch: Vec<Swap>) -> Result<()> {
    let replies = store.swap(batch.into()).await?.value;
    match replies.iter().find(|reply| !matches!(reply, SwapReply::Swapped(_))) {
        None => Ok(()),
        Some(other) => Err(Error::new(ErrorKind::Invalid, format!("a new record was not taken: {other:?}"))),
    }
}

/// How many of these records are there.
async fn present(store: &Arc<dyn Store>, ids: &[RecordId]) -> Result<usize> {
    let mut present = 0;
    for ids in ids.chunks(BATCH) {
        present += store.load(ids.to_vec()).await?.records()?.iter().flatten().count();
    }
    Ok(present)
}

/// What claimers saw.
#[derive(Default)]
struct Claims {
    took: Vec<Duration>,
    /// The keys that were claimed and completed.
    done: Vec<RecordId>,
    errors: Vec<String>,
}

/// Claimers at work.
struct Claimers {
    at_work: JoinSet<Claims>,
    stop: watch::Sender<bool>,
}

impl Claimers {
    /// Sets one claimer to work on each store, with an engine of its own, as if they were processes.
    fn start(stores: &[Arc<dyn Store>]) -> Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let mut at_work = JoinSet::new();
        for store in stores {
            let builder = Semel::builder_shared(Arc::clone(store));
            let semel = builder.lease(sample::LONG).retention(sample::LONG).replays_kept(0, 0);
            // What is removed is counted, so only the sweepers may remove it.
            let semel = semel.no_sweep().build()?;
            at_work.spawn(live(semel, stopped.clone()));
        }
        Ok(Self { at_work, stop })
    }

    async fn stop(mut self) -> Claims {
        self.stop.send_replace(true);
        let mut all = Claims::default();
        while let Some(claims) = self.at_work.join_next().await {
            match claims {
                Ok(claims) => {
                    all.took.extend(claims.took);
                    all.done.extend(claims.done);
                    all.errors.extend(claims.errors);
                }
                Err(error) => all.errors.push(format!("a claimer broke off: {error}")),
            }
        }
        all
    }
}

async fn live(semel: Semel, stopped: watch::Receiver<bool>) -> Claims {
    let mut claims = Claims::default();
    while !*stopped.borrow() {
        if let Err(error) = turn(&semel, &mut claims).await {
            claims.errors.push(format!("a claimer was told {error:?}"));
        }
        // A store in this process answers at once; the others must get a turn all the same.
        tokio::task::yield_now().await;
    }
    claims
}

async fn turn(semel: &Semel, claims: &mut Claims) -> Result<()> {
    let key = sample::key("claimed")?;
    let asked_at = Instant::now();
    let decision = semel.claim(Claim::new(&key)).await?;
    claims.took.push(asked_at.elapsed());
    let Decision::Run(permit) = decision else {
        claims.errors.push(format!("the first claim of a key was told {decision:?}"));
        return Ok(());
    };
    permit.complete(Outcome::success("done")).await?;
    claims.done.push(key.id());
    Ok(())
}
