//! The handle that callers hold, and what its clones share.

use std::collections::HashSet;
use std::fmt::{self, Display};
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::batcher::{Batcher, PendingAsk, Rule, runtime_ended};
use super::builder::SemelBuilder;
use super::claim::{
    Busy, Claim, ClaimedAll, Decision, Held, Mismatch, ProbeFn, Probed, RecordedOnce, Replay, Unheard,
};
use super::duplicate_counts::DuplicateCounts;
use super::once::{Once, OnceError, run_decided};
use super::operator::{Action, OperatorAnswer};
use super::permit::{Permit, PermitParts, Renewal};
use super::replay_cache::ReplayCache;
use super::swap_loop::{BoxedRule, BoxedSwapLoop};
use super::swap_loop::{Effect, Guess, Settled, SwapLoop};
use super::sweeper::SweepReport;
use super::together::ask_together;
use super::upkeep::Upkeep;
use super::waiters::Waiters;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::key::{Key, RecordId};
use crate::lock::lock;
use crate::machine::claim::{self, Ask, Claimed, Probe, Recorded};
use crate::machine::offset::{self, Move, Moved};
use crate::machine::settle::{self, ReleaseAnswer, Resolution, Resolved};
use crate::machine::waiting::{self, Change, Changed};
use crate::observe::{self, Counters, Stats};
use crate::outcome::Outcome;
use crate::per_thread::PerThread;
use crate::policy::{OnOutage, Policy};
use crate::record::{Grant, PermitId, Record, State};
use crate::store::{Caching, Page, Scan, Store, Swept};

/// How long to wait before the first read of a record that another process may have settled.
const POLL_FIRST: Duration = Duration::from_millis(10);
/// How long at most between two reads.
const POLL_LAST: Duration = Duration::from_secs(1);
/// How long `close` waits for what runs by itself, and for what is in flight.
pub(super) const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

/// Makes work happen once. Cheap to clone: all clones share one store and one set of counters.
///
/// Its methods need a tokio runtime. Every one of them may be cancelled at any await: what is in flight to
/// the store goes on, and nothing runs a second time because of it.
///
/// It sweeps by itself, every 60 s. Before a planned stop, call [`close`](Self::close).
#[derive(Clone)]
pub struct Semel {
    handles: Arc<PerThread<Arc<EngineHandle>>>,
}

/// A thread's own handle to the engine: every permit takes a share of it, and one count for all threads would move
/// between their cores.
pub(super) struct EngineHandle {
    engine: Arc<Engine>,
    pub(super) owner: Arc<str>,
    /// Whether the last claim on this thread found a record, in a store that answered at once. The next one then looks
    /// first, and drafts a record only if there is none: replays come in crowds, and so do new keys.
    expects_record: AtomicBool,
}

/// What all handles of one engine share.
pub(super) struct Engine {
    pub(super) batcher: Arc<Batcher>,
    pub(super) policy: Policy,
    pub(super) duplicates: DuplicateCounts,
    pub(super) replays: ReplayCache,
    pub(super) waiters: Waiters,
    pub(super) counters: Counters,
    pub(super) upkeep: Upkeep,
    /// Records that a caller in this process is probing.
    probing: Mutex<HashSet<RecordId>>,
    mint: Box<dyn Fn() -> u128 + Send + Sync>,
}

impl Deref for EngineHandle {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Semel {
    /// An engine over `store` with the default policy: lease 60 s, retention 24 h, a lapsed run is run again.
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).build_unchecked()
    }

    /// Builder for an engine over `store`.
    pub fn builder(store: impl Store) -> SemelBuilder {
        SemelBuilder::new(Arc::new(store))
    }

    /// Builder for an engine over a store that others hold too.
    pub fn builder_shared(store: Arc<dyn Store>) -> SemelBuilder {
        SemelBuilder::new(store)
    }

    pub(super) fn of(engine: Engine, owner: &str) -> Self {
        let engine = Arc::new(engine);
        let handle = || {
            let (engine, expects_record) = (Arc::clone(&engine), AtomicBool::new(false));
            Arc::new(EngineHandle { engine, owner: Arc::from(owner), expects_record })
        };
        Self { handles: Arc::new(PerThread::new(handle)) }
    }

    fn engine(&self) -> &Arc<EngineHandle> {
        self.handles.mine()
    }

    /// The owner of every run of this engine whose claim names no other.
    pub fn owner(&self) -> &str {
        &self.engine().owner
    }

    /// Asks to run. Exactly one of all callers of a key is told to.
    pub async fn claim(&self, claim: Claim) -> Result<Decision> {
        let engine = self.engine();
        let unheard = claim.unheard();
        let ask = claim.ask(engine)?;
        self.claim_as(&claim, ask, unheard).await
    }

    async fn claim_as(&self, claim: &Claim, ask: Ask, unheard: Unheard) -> Result<Decision> {
        let engine = self.engine();
        let permit_id = ask.permit_id;
        let decided = if claim.is_plain() {
            engine.start_claim(ask, unheard).decided(engine).await
        } else {
            // Out of line: waiting and probing need much more state than most claims should carry around.
            Box::pin(self.claim_patiently(ask, claim, unheard)).await
        };
        match decided {
            Ok(decision) => {
                tracing::debug!(key = %claim.key.id().short(), decision = decision.as_str(), "semel: decided");
                Ok(decision)
            }
            Err(error) => engine.without_store(claim, permit_id, unheard, error),
        }
    }

    /// Asks to run, and waits at most `wait` for a running caller to settle.
    pub async fn claim_or_wait(&self, claim: Claim, wait: Duration) -> Result<Decision> {
        self.claim(claim.wait_up_to(wait)).await
    }

    /// Goes on under a permit that was granted before, in this process or another, and renews its lease.
    pub async fn resume(&self, key: &Key, permit_id: PermitId) -> Result<Decision> {
        self.claim(Claim::new(key).permit_id(permit_id)).await
    }

    /// A permit of a run that no store knows of, for callers that give up on a slow store before the engine does and
    /// whose policy is to run all the same. It is counted and logged; the work may run twice.
    pub fn unprotected(&self, claim: &Claim, why: &Error) -> Permit {
        let engine = self.engine();
        engine.unprotected(claim, engine.mint(), why)
    }

    /// The permit that these parts make, without asking the store: the next call on it tells whether it still holds a
    /// run. Its deadline starts now, because this machine's clock cannot tell when it was granted; a caller that must
    /// know renews it first.
    pub fn permit(&self, parts: PermitParts) -> Permit {
        Permit::of_parts(self.engine(), parts)
    }

    /// Stores an outcome that is already there, unless the key is taken: claim and complete in one swap.
    pub async fn record_once(&self, claim: Claim, outcome: Outcome) -> Result<RecordedOnce> {
        let engine = self.engine();
        engine.attend();
        let started_at = Instant::now();
        // A caller that brings an outcome along has no use for a probe of another's.
        let ask = Ask { probe: Probe::None, ..claim.ask(engine)? };
        let permit_id = ask.permit_id;
        let rule = move |found: Option<&Record>, now| claim::record_once(found, &ask, &outcome, now);
        let swap_loop = SwapLoop::new(claim.key, Guess::Absent, rule).permit_id(permit_id);
        let settled = engine.batcher.ask(swap_loop, |_| let_go).under(permit_id).await?;
        engine.recorded(settled, started_at)
    }

    /// Claims all keys or none, under one permit id.
    ///
    /// They are claimed in the order of their digests, so two callers with the same keys never hold one each. The first
    /// that does not run is the answer, and what this call was granted before it is released; a run that went on before
    /// the call goes on after it. What a crash in the middle of [`complete_all`](Self::complete_all) left behind is
    /// mended first.
    pub async fn claim_all(&self, claims: Vec<Claim>) -> Result<ClaimedAll> {
        let engine = self.engine();
        let (permit_id, unheard) = engine.shared_permit_id(&claims)?;
        let mut claims: Vec<(usize, Claim)> = claims.into_iter().enumerate().collect();
        claims.sort_by_key(|(_, claim)| claim.key.id());
        if claims.windows(2).any(|pair| matches!(pair, [(_, a), (_, b)] if a.key == b.key)) {
            return Err(Error::invalid("claim_all was given one key twice; give each key once"));
        }
        engine.mend(claims.iter().map(|(_, claim)| &claim.key)).await?;
        let mut granted = GrantedTogether { permits: Vec::with_capacity(claims.len()), unheard };
        for (place, claim) in claims {
            let ask = Ask { permit_id, ..claim.ask(engine)? };
            match self.claim_as(&claim, ask, unheard).await {
                Ok(Decision::Run(permit)) => granted.permits.push((place, permit)),
                Ok(decision) => {
                    granted.give_back().await;
                    return Ok(ClaimedAll::Refused { key: claim.key, decision: Box::new(decision) });
                }
                Err(error) => {
                    granted.give_back().await;
                    return Err(error);
                }
            }
        }
        Ok(ClaimedAll::Run(granted.into_permits()))
    }

    /// Completes all permits of a [`claim_all`](Self::claim_all) with one outcome, in one batch. If one of them is lost,
    /// the error says so and the others are completed.
    pub async fn complete_all(&self, permits: &[Permit], outcome: Outcome) -> Result<()> {
        let sent_at = Instant::now();
        let answers = self
            .settle_all(permits, |permit| {
                let (proof, outcome) = (permit.proof(), outcome.clone());
                move |found: Option<&Record>, now: Timestamp| settle::complete(found, proof, &outcome, now)
            })
            .await?;
        let mut first_error = Ok(());
        for (permit, answer) in answers {
            let Some(answer) = answer else { continue };
            let completed = answer.and_then(|settled| permit.completed(&settled, sent_at));
            first_error = first_error.and(completed);
        }
        first_error
    }

    /// Releases all permits of a [`claim_all`](Self::claim_all), and says for each whether it held a run.
    pub async fn release_all(&self, permits: &[Permit], reason: &str) -> Result<Vec<ReleaseAnswer>> {
        let answers = self
            .settle_all(permits, |permit| {
                let (proof, reason): (_, Box<str>) = (permit.proof(), reason.into());
                move |found: Option<&Record>, now: Timestamp| settle::release(found, proof, &reason, now)
            })
            .await?;
        let released = answers.into_iter().map(|(permit, answer)| {
            let Some(answer) = answer else { return Ok(ReleaseAnswer::NotHolding) };
            let answer = answer?.answer;
            if answer == ReleaseAnswer::Released {
                self.engine().waiters.wake(&permit.key().id());
            }
            Ok(answer)
        });
        released.collect()
    }

    /// Starts the leases of all permits of a [`claim_all`](Self::claim_all) anew.
    pub async fn renew_all(&self, permits: &[Permit]) -> Result<Vec<Renewal>> {
        let sent_at = Instant::now();
        let answers = self
            .settle_all(permits, |permit| {
                let (proof, lease) = (permit.proof(), permit.lease());
                move |found: Option<&Record>, now: Timestamp| settle::renew(found, proof, lease, now)
            })
            .await?;
        let renewed = answers.into_iter().map(|(permit, answer)| match answer {
            Some(answer) => permit.renewed(answer?.answer, sent_at),
            None => Ok(Renewal::Renewed),
        });
        renewed.collect()
    }

    /// Settles permits in one batch, in a task of its own: a caller that goes away leaves nothing half settled. The
    /// answers come in the order of the permits; there is none for a run that no store knows of.
    async fn settle_all<A: Send + 'static, R: Rule<A>>(
        &self,
        permits: &[Permit],
        rule: impl Fn(&Permit) -> R,
    ) -> Result<Vec<(Permit, Option<Result<Settled<A>>>)>> {
        let protected: Vec<_> = permits.iter().filter(|permit| !permit.is_unprotected()).collect();
        let asks = protected.iter().map(|permit| {
            SwapLoop::new(permit.key().clone(), permit.guess(), rule(permit)).permit_id(permit.id())
        });
        let asks = asks.collect();
        let batcher = Arc::clone(&self.engine().batcher);
        let answers = to_the_end(async move { Ok(ask_together(&batcher, asks).await) }).await?;
        for (permit, answer) in protected.iter().zip(&answers) {
            if let Ok(settled) = answer {
                permit.see(settled.record.clone());
            }
        }
        let mut answers = answers.into_iter();
        let each = permits.iter().map(|permit| {
            let answer = if permit.is_unprotected() { None } else { answers.next() };
            (permit.clone(), answer)
        });
        Ok(each.collect())
    }

    /// Runs `work` once for this key and request, or hands back the value that it had.
    ///
    /// An `Err` from the work releases the key, or is stored, as the policy says. A panic or a dropped future
    /// proves nothing about the effect: the lease lapses and the lapse policy decides.
    pub async fn once<T, E, R, F, Fut>(
        &self,
        key: &Key,
        request: &R,
        work: F,
    ) -> Result<Once<T>, OnceError<E>>
    where
        T: Serialize + DeserializeOwned,
        E: Display,
        R: Serialize + ?Sized,
        F: FnOnce(Permit) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let fingerprint = Fingerprint::of(request)?;
        self.once_with(Claim::new(key).fingerprint(fingerprint), work).await
    }

    /// [`once`](Self::once), under a claim of your own.
    pub async fn once_with<T, E, F, Fut>(&self, claim: Claim, work: F) -> Result<Once<T>, OnceError<E>>
    where
        T: Serialize + DeserializeOwned,
        E: Display,
        F: FnOnce(Permit) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let on_failure = claim.policy(&self.engine().policy).on_failure;
        run_decided(self.claim(claim).await?, work, on_failure).await
    }

    /// The record of a key, if there is one that still counts. Never refreshes it, never counts as a duplicate. A run
    /// that lapsed under `hold` is shown as held.
    pub async fn get(&self, key: &Key) -> Result<Option<Record>> {
        let found = self.get_all(std::slice::from_ref(key)).await?;
        found.into_iter().next().unwrap_or(Ok(None))
    }

    /// The records of many keys in one round trip, in their order; as [`get`](Self::get) for each.
    pub async fn get_all(&self, keys: &[Key]) -> Result<Vec<Result<Option<Record>>>> {
        let ids = keys.iter().map(Key::id).collect();
        let answer = self.engine().batcher.send(|store| store.load(ids))?.await?.for_each_of(keys.len())?;
        let found = answer.value.into_iter().zip(keys).map(|(found, key)| {
            let record = found?.filter(|record| record.key == *key);
            Ok(record.and_then(|record| seen(record, answer.now)))
        });
        Ok(found.collect())
    }

    /// The record with this id, if there is one that still counts. If a caller runs, waits at most `wait` until it is
    /// settled or its lease has lapsed, and hands it back as it is then. Never counts as a duplicate.
    pub async fn get_settled(&self, id: RecordId, wait: Duration) -> Result<Option<Record>> {
        let started_at = Instant::now();
        let until = started_at.checked_add(wait).unwrap_or(started_at);
        let place = self.engine().waiters.join(id);
        loop {
            let mut settled = std::pin::pin!(place.settled.notified());
            settled.as_mut().enable();
            let (record, now) = self.engine().load(id).await?;
            let runs = record.as_ref().is_some_and(|record| runs(record, now));
            let is_settled = !runs || Instant::now() >= until;
            if is_settled || !self.until_settled(id, settled, until).await? {
                return Ok(record.and_then(|record| seen(record, now)));
            }
        }
    }

    /// A page of records, in the order of their ids, each as [`get`](Self::get) shows it.
    pub async fn scan(&self, scan: Scan) -> Result<Page> {
        let answer = self.engine().batcher.send(|store| store.scan(scan))?.await?;
        let mut page = answer.value;
        page.records.retain(|record| record.is_live(answer.now));
        page.records = page.records.into_iter().map(|record| record.seen_at(answer.now)).collect();
        Ok(page)
    }

    /// Settles a held record, or a run that lapsed under `hold`: done with an outcome, or released.
    pub async fn resolve(&self, key: &Key, resolution: Resolution) -> Result<Resolved> {
        let engine = self.engine();
        let permit_id = engine.mint();
        let rule = move |found: Option<&Record>, now| settle::resolve(found, permit_id, &resolution, now);
        let settled = engine.decide(key.clone(), permit_id, rule).await?;
        Ok(settled.answer)
    }

    /// For operators: has the next claim run. Takes the run that was shown away from its caller, or lets the held record
    /// run again. With `version`, only if the record is still what was shown.
    pub async fn release_shown(
        &self,
        shown: &Record,
        reason: &str,
        version: Option<u64>,
    ) -> Result<OperatorAnswer> {
        let action = self.engine().action(shown, version);
        let permit_id = action.permit_id;
        self.operate(shown, permit_id, action.release(reason)).await
    }

    /// For operators: settles a held record, or a run that lapsed under `hold`. With `version`, only if the record is
    /// still what was shown.
    pub async fn resolve_shown(
        &self,
        shown: &Record,
        resolution: Resolution,
        version: Option<u64>,
    ) -> Result<OperatorAnswer> {
        let action = self.engine().action(shown, version);
        let permit_id = action.permit_id;
        self.operate(shown, permit_id, action.resolve(resolution)).await
    }

    async fn operate(
        &self,
        shown: &Record,
        permit_id: PermitId,
        rule: BoxedRule<OperatorAnswer>,
    ) -> Result<OperatorAnswer> {
        Ok(self.engine().decide(shown.key.clone(), permit_id, rule).await?.answer)
    }

    /// Removes at most `limit` records that are past their time. The engine does this by itself.
    pub async fn sweep(&self, limit: usize) -> Result<Swept> {
        self.engine().sweep(limit).await
    }

    /// The report on the last round of sweeping, and on every one from now on.
    pub fn sweep_reports(&self) -> watch::Receiver<SweepReport> {
        let engine = self.engine();
        engine.attend();
        engine.upkeep.reports()
    }

    /// Moves the offset under this key.
    pub async fn move_offset(&self, key: &Key, wanted: Move) -> Result<Moved> {
        let engine = self.engine();
        let swap_loop = self.move_offset_loop(key, wanted);
        Ok(engine.batcher.ask(swap_loop, |_| let_go).await?.answer)
    }

    /// The move of an offset, for a caller that drives it inside a transaction of its own.
    pub fn move_offset_loop(&self, key: &Key, wanted: Move) -> BoxedSwapLoop<Moved> {
        let (own, permit_id) = (key.clone(), self.engine().mint());
        let rule: BoxedRule<Moved> =
            Box::new(move |found, now| offset::shift(found, &own, permit_id, &wanted, now));
        SwapLoop::new(key.clone(), Guess::Unknown, rule).permit_id(permit_id)
    }

    /// Changes the list of keys that wait to be run, which is kept under this key.
    pub async fn change_waiting(&self, key: &Key, wanted: Change) -> Result<Changed> {
        let engine = self.engine();
        let (own, permit_id) = (key.clone(), engine.mint());
        let rule: BoxedRule<Changed> =
            Box::new(move |found, now| waiting::change(found, &own, permit_id, &wanted, now));
        let swap_loop = SwapLoop::new(key.clone(), Guess::Unknown, rule).permit_id(permit_id);
        Ok(engine.batcher.ask(swap_loop, |_| let_go).await?.answer)
    }

    /// A `record_once`, for a caller that drives it inside a transaction of its own.
    pub fn record_once_loop(&self, claim: &Claim, outcome: Outcome) -> Result<BoxedSwapLoop<Recorded>> {
        let ask = Ask { probe: Probe::None, ..claim.ask(self.engine())? };
        let (key, permit_id) = (ask.key.clone(), ask.permit_id);
        let rule: BoxedRule<Recorded> =
            Box::new(move |found, now| claim::record_once(found, &ask, &outcome, now));
        Ok(SwapLoop::new(key, Guess::Absent, rule).permit_id(permit_id))
    }

    /// What a `record_once` that was driven inside a transaction means to its caller.
    pub fn recorded(&self, settled: Settled<Recorded>) -> Result<RecordedOnce> {
        // Nothing of it may be kept in memory: the transaction may yet be rolled back.
        let settled = Settled { caching: Caching::Refused, ..settled };
        self.engine().recorded(settled, Instant::now())
    }

    /// Wakes the callers that wait in this process for the record with this id. For stores that are notified of other
    /// processes' writes; a wake too many costs a read.
    pub fn wake(&self, id: &RecordId) {
        self.engine().waiters.wake(id);
    }

    /// How many callers wait in this process for another's run, now and from now on. For stores that can have other
    /// processes [`wake`](Self::wake) them.
    pub fn waiting(&self) -> watch::Receiver<usize> {
        self.engine().waiters.watch()
    }

    /// What this engine decided since it was built.
    pub fn stats(&self) -> Stats {
        self.engine().counters.stats()
    }

    /// Writes the counts of duplicates that are still only in this process.
    pub async fn flush(&self) -> Result<()> {
        let engine = Arc::clone(&self.engine().engine);
        // To its end: what was taken to be written must not be lost with the caller.
        to_the_end(async move { engine.duplicates.write_all(&engine.batcher).await }).await
    }

    /// Ends the engine: stops sweeping and heartbeats, writes the counts of duplicates, waits for what is in flight, and
    /// lets go of the store, which closes with its last handle. Calls after it are refused. A program that ends after it
    /// loses nothing; one that ends without it loses counts of duplicates.
    pub async fn close(&self) -> Result<()> {
        let engine = Arc::clone(&self.engine().engine);
        to_the_end(async move {
            // Bounded: a task on a runtime that is not polled would never end.
            drop(timeout(CLOSE_PATIENCE, engine.upkeep.close()).await);
            let written = if engine.batcher.is_open() {
                engine.duplicates.write_all(&engine.batcher).await
            } else {
                Ok(())
            };
            engine.batcher.close().await;
            written
        })
        .await
    }

    /// Claims with a probe, with a wait, or with both.
    async fn claim_patiently(&self, ask: Ask, claim: &Claim, unheard: Unheard) -> Result<Decision> {
        let engine = self.engine();
        let started_at = Instant::now();
        let until = started_at.checked_add(claim.wait).unwrap_or(started_at);
        let place = engine.waiters.join(ask.key.id());
        loop {
            let mut settled = std::pin::pin!(place.settled.notified());
            // Listening starts before the claim is sent: a settle right after its answer must not be missed.
            settled.as_mut().enable();
            let decision = match &claim.probe {
                None => engine.start_claim(ask.clone(), unheard).decided(engine).await?,
                Some(probe) => self.claim_probing(&ask, probe, unheard).await?,
            };
            let Decision::Busy(_) = decision else { return Ok(decision) };
            if claim.wait.is_zero() || !self.until_settled(ask.key.id(), settled, until).await? {
                return Ok(decision);
            }
        }
    }

    /// Returns whether it is worth asking again: the run was settled, or its lease lapsed. Reads, instead of claiming, so
    /// that one waiting caller is one duplicate however long it waits.
    async fn until_settled(
        &self,
        id: RecordId,
        mut settled: Pin<&mut tokio::sync::futures::Notified<'_>>,
        until: Instant,
    ) -> Result<bool> {
        let mut pause = POLL_FIRST;
        loop {
            let next_read = Instant::now().checked_add(pause).unwrap_or(until).min(until);
            if timeout_at(next_read, settled.as_mut()).await.is_ok() {
                return Ok(true);
            }
            let (record, now) = self.engine().load(id).await?;
            if !record.is_some_and(|record| runs(&record, now)) {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            pause = pause.saturating_mul(2).min(POLL_LAST);
        }
    }

    /// Claims, and probes whether the effect landed where the machine says so. What the probe found counts only for the
    /// run that it was asked about.
    async fn claim_probing(&self, ask: &Ask, probe: &ProbeFn, unheard: Unheard) -> Result<Decision> {
        let engine = self.engine();
        let started_at = Instant::now();
        let mut verdict: Option<ProbeVerdict> = None;
        loop {
            let settled = engine.claim_knowing(ask.clone(), verdict.take(), unheard).await?;
            let (Claimed::Probe, Some(record)) = (settled.answer, &settled.record) else {
                return engine.decide_claim(settled, started_at);
            };
            let Some(_probing) = Probing::begin(engine, record.key.id()) else {
                return engine.decision(settled, started_at);
            };
            let found = match probe(Record::clone(record)).await {
                Probed::Landed(outcome) => Probe::Landed(outcome),
                Probed::NotLanded => Probe::NotLanded,
                Probed::CannotTell => Probe::CannotTell,
            };
            verdict =
                Some(ProbeVerdict { run: record.state.grant().clone(), attempt: record.attempt, found });
        }
    }
}

impl fmt::Debug for Semel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = self.engine();
        f.debug_struct("Semel")
            .field("owner", &engine.owner)
            .field("policy", &engine.policy)
            .finish_non_exhaustive()
    }
}

/// What a probe found out, and about which run.
struct ProbeVerdict {
    run: Grant,
    attempt: u32,
    found: Probe,
}

impl ProbeVerdict {
    fn is_about(&self, record: &Record) -> bool {
        record.attempt == self.attempt && *record.state.grant() == self.run
    }
}

/// One probe of a record in this process at a time.
struct Probing<'a> {
    engine: &'a Engine,
    id: RecordId,
}

impl<'a> Probing<'a> {
    fn begin(engine: &'a Engine, id: RecordId) -> Option<Self> {
        lock(&engine.probing).insert(id).then(|| Self { engine, id })
    }
}

impl Drop for Probing<'_> {
    fn drop(&mut self) {
        lock(&self.engine.probing).remove(&self.id);
    }
}

/// What takes the answer of a claim whose caller is gone.
type UnheardClaim = Box<dyn FnOnce(Result<Settled<Claimed>>) + Send>;

/// A claim on its way.
enum Started {
    /// Decided at once.
    Decided(Result<Decision>),
    /// The store was asked, at this moment.
    Asked(PendingAsk<Claimed, UnheardClaim>, PermitId, Instant),
}

impl Started {
    async fn decided(self, engine: &Arc<EngineHandle>) -> Result<Decision> {
        match self {
            Self::Decided(decision) => decision,
            Self::Asked(asked, permit_id, started_at) => {
                engine.decide_claim(asked.under(permit_id).await?, started_at)
            }
        }
    }
}

impl Engine {
    pub(super) fn new(builder: SemelBuilder) -> Self {
        Self {
            batcher: Batcher::new(builder.store),
            policy: builder.policy,
            duplicates: DuplicateCounts::new(builder.counts_bytes_a_second),
            replays: ReplayCache::new(builder.replays_records_max, builder.replays_bytes_max),
            waiters: Waiters::default(),
            counters: Counters::default(),
            upkeep: Upkeep::new(builder.sweeping),
            probing: Mutex::default(),
            mint: builder.mint,
        }
    }

    pub(super) fn mint(&self) -> PermitId {
        PermitId::new((self.mint)())
    }

    pub(super) async fn sweep(&self, limit: usize) -> Result<Swept> {
        let swept = self.batcher.finish(|store| store.sweep(limit)).await?.value;
        self.counters.swept.add(swept.removed as u64);
        Ok(swept)
    }

    async fn load(&self, id: RecordId) -> Result<(Option<Arc<Record>>, Timestamp)> {
        let answer = self.batcher.send(|store| store.load(vec![id]))?.await?.for_each_of(1)?;
        Ok((answer.value.into_iter().next().unwrap_or(Ok(None))?, answer.now))
    }

    /// Asks under a permit id of its own, and wakes the callers that wait for the record.
    async fn decide<A: Send + Unpin + 'static>(
        &self,
        key: Key,
        permit_id: PermitId,
        rule: impl Rule<A>,
    ) -> Result<Settled<A>> {
        let id = key.id();
        let swap_loop = SwapLoop::new(key, Guess::Unknown, rule).permit_id(permit_id);
        let settled = self.batcher.ask(swap_loop, |_| let_go).under(permit_id).await?;
        self.waiters.wake(&id);
        Ok(settled)
    }

    fn action(&self, shown: &Record, version: Option<u64>) -> Action {
        let expected = version.map(crate::record::Version::new);
        Action { shown: Arc::new(shown.clone()), permit_id: self.mint(), expected }
    }

    /// The one permit id of several claims, and what it means if their caller is gone.
    fn shared_permit_id(&self, claims: &[Claim]) -> Result<(PermitId, Unheard)> {
        let mut given = claims.iter().filter_map(Claim::given_permit_id);
        let Some(first) = given.next() else { return Ok((self.mint(), Unheard::NeverStarted)) };
        if given.any(|other| other != first) {
            let message = "claim_all was given claims with different permit ids; they share one";
            return Err(Error::invalid(message));
        }
        Ok((first, Unheard::MayAskAgain))
    }

    /// Completes what a crash in the middle of a `complete_all` left behind: where one of the keys is done, the others
    /// that still run or have lapsed under the same permit get its outcome.
    async fn mend(&self, keys: impl Iterator<Item = &Key>) -> Result<()> {
        let keys: Vec<_> = keys.cloned().collect();
        let ids = keys.iter().map(Key::id).collect();
        let found = self.batcher.send(|store| store.load(ids))?.await?.for_each_of(keys.len())?;
        let records: Vec<_> = found.value.into_iter().collect::<Result<_>>()?;
        let done = records.iter().flatten().find_map(|record| match &record.state {
            State::Done(done) if record.is_live(found.now) => Some(done.clone()),
            State::Done(_) | State::Running(_) | State::Released(_) | State::Held(_) => None,
        });
        let Some(done) = done else { return Ok(()) };
        let permit_id = done.grant.permit_id;
        let left_over = records.into_iter().zip(keys).filter(|(record, _)| {
            record.as_ref().is_some_and(|record| {
                !matches!(record.state, State::Done(_)) && record.state.grant().permit_id == permit_id
            })
        });
        let asks = left_over.map(|(record, key)| {
            let outcome = done.outcome.clone();
            let rule =
                move |found: Option<&Record>, now: Timestamp| settle::mend(found, permit_id, &outcome, now);
            SwapLoop::new(key, Guess::Loaded(record, found.now), rule).permit_id(permit_id)
        });
        let asks: Vec<_> = asks.collect();
        let ids: Vec<_> = asks.iter().map(|ask| ask.key().id()).collect();
        let batcher = Arc::clone(&self.batcher);
        let answers = to_the_end(async move { Ok(ask_together(&batcher, asks).await) }).await?;
        for (id, answer) in ids.iter().zip(answers) {
            answer?;
            self.waiters.wake(id);
        }
        Ok(())
    }
}

impl EngineHandle {
    /// Starts what the engine does by itself, if it does not run.
    #[inline]
    pub(super) fn attend(&self) {
        self.engine.upkeep.attend(&self.engine);
    }

    /// Goes as far as can be gone at once. Not async: what an ask holds then never becomes part of a future.
    fn start_claim(self: &Arc<Self>, ask: Ask, unheard: Unheard) -> Started {
        self.attend();
        let (permit_id, started_at) = (ask.permit_id, Instant::now());
        if let Some((record, now)) = self.replays.get(&ask, started_at) {
            self.duplicates.note(&record, now);
            self.counters.replay.count();
            return Started::Decided(Replay::new(record).map(Decision::Replay));
        }
        let key = ask.key.clone();
        let span = tracing::debug_span!("semel.claim", key = %key.id().short());
        let _entered = span.enter();
        let rule = move |found: Option<&Record>, now| claim::claim(found, &ask, now);
        let expects_record = self.expects_record.load(Ordering::Relaxed);
        let guess = if expects_record { Guess::Unknown } else { Guess::Absent };
        let mut swap_loop = SwapLoop::new(key, guess, rule).permit_id(permit_id);
        match self.batcher.ask_now(&mut swap_loop) {
            Ok(settled) => {
                let found_record = settled.as_ref().is_ok_and(|settled| settled.effect == Effect::Unchanged);
                if found_record != expects_record {
                    self.expects_record.store(found_record, Ordering::Relaxed);
                }
                Started::Decided(settled.and_then(|settled| self.decide_claim(settled, started_at)))
            }
            Err(waits) => {
                self.expects_record.store(false, Ordering::Relaxed);
                let asked = self.batcher.ask_later(swap_loop, waits, self.give_back(permit_id, unheard));
                Started::Asked(asked, permit_id, started_at)
            }
        }
    }

    fn decide_claim(self: &Arc<Self>, settled: Settled<Claimed>, started_at: Instant) -> Result<Decision> {
        observe::claim_took_since(started_at);
        self.decision(settled, started_at)
    }

    async fn claim_knowing(
        self: &Arc<Self>,
        mut ask: Ask,
        verdict: Option<ProbeVerdict>,
        unheard: Unheard,
    ) -> Result<Settled<Claimed>> {
        self.attend();
        let (key, permit_id) = (ask.key.clone(), ask.permit_id);
        let give_back = self.give_back(permit_id, unheard);
        let guess = if verdict.is_some() { Guess::Unknown } else { Guess::Absent };
        let rule = move |found: Option<&Record>, now: Timestamp| {
            ask.probe = match (&verdict, found) {
                (Some(verdict), Some(found)) if verdict.is_about(found) => verdict.found.clone(),
                _ => Probe::Offered,
            };
            claim::claim(found, &ask, now)
        };
        let swap_loop = SwapLoop::new(key, guess, rule).permit_id(permit_id);
        self.batcher.ask(swap_loop, give_back).under(permit_id).await
    }

    /// What happens to the answer of a claim whose caller is gone: made only if the answer does not come at once.
    fn give_back(
        self: &Arc<Self>,
        permit_id: PermitId,
        unheard: Unheard,
    ) -> impl FnOnce(&Key) -> UnheardClaim + use<'_> {
        move |key| match unheard {
            Unheard::MayAskAgain => Box::new(let_go),
            Unheard::NeverStarted => {
                let (engine, key) = (Arc::clone(self), key.clone());
                Box::new(move |answer| engine.give_back_unheard(&answer, key, permit_id))
            }
        }
    }

    /// A caller that did not hear the answer never started, so what it was granted is released at once, and so is what
    /// it may have been granted. Its permit id was minted for this ask, and no other caller knows it.
    fn give_back_unheard(self: &Arc<Self>, answer: &Result<Settled<Claimed>>, key: Key, permit_id: PermitId) {
        let may_run = match answer {
            Ok(settled) => settled.answer == Claimed::Run,
            Err(error) => error.kind() == ErrorKind::Unknown,
        };
        if may_run {
            self.disown(key, permit_id);
        }
    }

    /// What an error means to a claim: a refusal, or, if the policy says so, a run without protection.
    fn without_store(
        self: &Arc<Self>,
        claim: &Claim,
        permit_id: PermitId,
        unheard: Unheard,
        error: Error,
    ) -> Result<Decision> {
        if error.kind() == ErrorKind::Unknown && unheard == Unheard::NeverStarted {
            // The claim may have taken. Its caller may ask again with the permit id in the error; then nothing is given
            // back.
            let rule = move |found: Option<&Record>, now: Timestamp| {
                settle::give_back_unheard(found, permit_id, now)
            };
            self.release_unheard(claim.key.clone(), rule);
        }
        let is_outage = matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown);
        if !is_outage || claim.policy(&self.policy).on_outage == OnOutage::Closed {
            return Err(error);
        }
        Ok(Decision::Unprotected(self.unprotected(claim, permit_id, &error)))
    }

    fn unprotected(self: &Arc<Self>, claim: &Claim, permit_id: PermitId, why: &Error) -> Permit {
        tracing::warn!(key = %claim.key.id().short(), %why, "semel: running unprotected");
        self.counters.unprotected.count();
        Permit::unprotected(self, claim.key.clone(), permit_id, claim.policy(&self.policy).lease)
    }

    fn decision(self: &Arc<Self>, settled: Settled<Claimed>, started_at: Instant) -> Result<Decision> {
        let Settled { answer, record, now, caching, .. } = settled;
        let record = record.ok_or_else(no_record)?;
        Ok(match answer {
            Claimed::Run => {
                self.counters.run.count();
                Decision::Run(Permit::of_record(self, record, started_at)?)
            }
            Claimed::Replay => {
                self.duplicates.note(&record, now);
                self.counters.replay.count();
                if caching == Caching::Allowed {
                    self.replays.keep(&record, now, started_at);
                }
                Decision::Replay(Replay::new(record)?)
            }
            Claimed::Busy { retry_after } => {
                self.duplicates.note(&record, now);
                self.counters.busy.count();
                Decision::Busy(Busy::new(record, retry_after)?)
            }
            Claimed::Mismatch => {
                self.counters.mismatch.count();
                Decision::Mismatch(Mismatch { record })
            }
            Claimed::Held | Claimed::Probe => {
                self.counters.held.count();
                Decision::Held(Held::new(record)?)
            }
        })
    }

    fn recorded(self: &Arc<Self>, settled: Settled<Recorded>, started_at: Instant) -> Result<RecordedOnce> {
        let Settled { answer, record, now, effect, caching } = settled;
        let refusal = match answer {
            Recorded::Recorded => {
                self.counters.run.count();
                let record = record.ok_or_else(no_record)?;
                self.waiters.wake(&record.key.id());
                return Ok(RecordedOnce::Recorded(Arc::unwrap_or_clone(record)));
            }
            Recorded::Refused(refusal) => refusal,
        };
        let settled = Settled { answer: refusal, record, now, effect, caching };
        match self.decision(settled, started_at)? {
            Decision::Replay(replay) => Ok(RecordedOnce::Replay(replay)),
            Decision::Busy(busy) => Ok(RecordedOnce::Busy(busy)),
            Decision::Mismatch(mismatch) => Ok(RecordedOnce::Mismatch(mismatch)),
            Decision::Held(held) => Ok(RecordedOnce::Held(held)),
            Decision::Run(_) | Decision::Unprotected(_) => Err(no_record()),
        }
    }

    /// Releases, in the background, what was or may have been granted to a caller that is gone and never started.
    pub(super) fn disown(self: &Arc<Self>, key: Key, permit_id: PermitId) {
        let rule = move |found: Option<&Record>, now: Timestamp| {
            settle::give_back(found, permit_id, settle::NEVER_STARTED, now)
        };
        self.release_unheard(key, rule);
    }

    fn release_unheard(self: &Arc<Self>, key: Key, rule: impl Rule<ReleaseAnswer>) {
        let id = key.id();
        let engine = Arc::clone(self);
        let released = move |answer: Result<Settled<ReleaseAnswer>>| match answer {
            Ok(_) => engine.waiters.wake(&id),
            Err(error) => tracing::debug!(key = %id.short(), %error, "semel: the lease decides"),
        };
        // Not again after a lost reply: by then, the caller may have asked again and been granted another run.
        let swap_loop = SwapLoop::new(key, Guess::Unknown, rule).never_twice();
        self.batcher.ask_unheard(swap_loop, released);
    }
}

/// Permits of a `claim_all` that is not through yet, each with the place of its claim.
struct GrantedTogether {
    permits: Vec<(usize, Permit)>,
    unheard: Unheard,
}

impl GrantedTogether {
    /// Releases what this call was granted, one after the other, so that the caller may claim it again when this
    /// returns. A run that was only resumed goes on.
    async fn give_back(mut self) {
        while let Some((_, permit)) = self.permits.pop() {
            if was_granted_anew(&permit)
                && let Err(error) = permit.release("not all keys were free").await
            {
                tracing::debug!(key = %permit.key().id().short(), %error, "semel: the lease decides");
            }
        }
    }

    fn into_permits(mut self) -> Vec<Permit> {
        let mut granted = std::mem::take(&mut self.permits);
        granted.sort_by_key(|(place, _)| *place);
        granted.into_iter().map(|(_, permit)| permit).collect()
    }
}

impl Drop for GrantedTogether {
    /// The caller went away and never started. What it was granted is given back, unless it brought the permit id: it
    /// may have asked again with it already, and must not find its run given away.
    fn drop(&mut self) {
        if self.unheard == Unheard::MayAskAgain {
            return;
        }
        for (_, permit) in self.permits.drain(..).filter(|(_, permit)| was_granted_anew(permit)) {
            permit.disown();
        }
    }
}

/// Whether the claim that made this permit was granted a run, rather than having resumed one.
fn was_granted_anew(permit: &Permit) -> bool {
    permit.last_seen().is_some_and(|record| settle::is_granted_by_last_write(&record))
}

/// For asks whose answer may go unheard.
pub(super) fn let_go<A>(answer: Result<Settled<A>>) {
    drop(answer);
}

/// Drives a future to its end in a task of its own, even if the caller goes away.
async fn to_the_end<T: Send + 'static>(
    future: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return future.await };
    runtime.spawn(future).await.map_err(|_| runtime_ended())?
}

/// The record as callers see it at `now`, if it still counts.
fn seen(record: Arc<Record>, now: Timestamp) -> Option<Record> {
    record.is_live(now).then(|| Arc::unwrap_or_clone(record.seen_at(now)))
}

fn runs(record: &Record, now: Timestamp) -> bool {
    match &record.state {
        State::Running(running) => running.lease_is_good(now),
        State::Done(_) | State::Released(_) | State::Held(_) => false,
    }
}

fn no_record() -> Error {
    Error::new(ErrorKind::Corrupt, "a decision came without the record it was made on; check the store")
}
