//! Waiting for the running caller: woken at once in this process, by looking again from another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use super::ask::Claim;
use super::decision::Decision;
use super::semel::Semel;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::id_map::IdMap;
use crate::key::RecordId;
use crate::lock::lock;
use crate::machine::claim::Ask;
use crate::record::{Record, State};

/// How long to wait before the first look at a store that nobody in this process writes for us.
const LOOK_FIRST: Duration = Duration::from_millis(10);
/// How long at most between two looks.
const LOOK_LAST: Duration = Duration::from_secs(1);

/// Who waits for which record in this process.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: Mutex<IdMap<Arc<Notify>>>,
    /// Lets a settle see without a lock that nobody waits.
    count: AtomicUsize,
    /// The same for whoever wants to hear of it.
    told: watch::Sender<usize>,
}

impl Waiters {
    pub(super) fn wake(&self, id: &RecordId) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(notify) = lock(&self.waiting).get(id) {
            notify.notify_waiters();
        }
    }

    fn join(&self, id: RecordId) -> Place<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.told.send_modify(|count| *count = count.saturating_add(1));
        let notify = Arc::clone(lock(&self.waiting).entry(id).or_default());
        Place { waiters: self, id, notify }
    }
}

/// One caller's place among the waiters; given up when dropped.
struct Place<'a> {
    waiters: &'a Waiters,
    id: RecordId,
    notify: Arc<Notify>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.waiters.waiting);
        // Two handles are the map's and this one: nobody else waits here.
        if waiting.get(&self.id).is_some_and(|notify| Arc::strong_count(notify) <= 2) {
            waiting.remove(&self.id);
        }
        self.waiters.count.fetch_sub(1, Ordering::SeqCst);
        self.waiters.told.send_modify(|count| *count = count.saturating_sub(1));
    }
}

impl Semel {
    /// Wakes whoever waits in this process for the record with this id. For stores that hear of other
    /// processes' writes; a wake too many costs a look.
    pub fn wake(&self, id: &RecordId) {
        self.inner.waiters.wake(id);
    }

    /// How many callers wait in this process for somebody else's run, now and from now on. For stores that can tell
    /// other processes to [`wake`](Self::wake) them.
    pub fn waiting(&self) -> watch::Receiver<usize> {
        self.inner.waiters.told.subscribe()
    }

    /// Claims with a probe, with a wait, or with both.
    pub(super) async fn claim_patiently(&self, ask: Ask, claim: &Claim) -> Result<Decision> {
        let started_at = Instant::now();
        let until = started_at.checked_add(claim.wait).unwrap_or(started_at);
        let place = self.inner.waiters.join(ask.key.id());
        loop {
            let mut settled = std::pin::pin!(place.notify.notified());
            // Listening starts before the claim is sent: a settle right after its answer must not be missed.
            settled.as_mut().enable();
            let decision = match &claim.probe {
                None => self.claim_now(ask.clone(), claim.unheard()).await?,
                Some(probe) => self.claim_probing(ask.clone(), probe, claim.unheard()).await?,
            };
            let Decision::Busy(_) = decision else { return Ok(decision) };
            if claim.wait.is_zero() || !self.until_settled(ask.key.id(), settled, until).await? {
                return Ok(decision);
            }
        }
    }

    /// Returns whether it is worth asking again: somebody settled, or the lease lapsed. Looks, instead of claiming, so
    /// that one waiting caller is one duplicate however long it waits.
    async fn until_settled(
        &self,
        id: RecordId,
        mut settled: std::pin::Pin<&mut tokio::sync::futures::Notified<'_>>,
        until: Instant,
    ) -> Result<bool> {
        let mut pause = LOOK_FIRST;
        loop {
            let next_look = Instant::now().checked_add(pause).unwrap_or(until).min(until);
            if timeout_at(next_look, settled.as_mut()).await.is_ok() || !self.is_running(id).await? {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            pause = pause.saturating_mul(2).min(LOOK_LAST);
        }
    }

    async fn is_running(&self, id: RecordId) -> Result<bool> {
        let (record, now) = self.look(id).await?;
        Ok(record.is_some_and(|record| runs(&record, now)))
    }

    /// The record with this id, if there is one that still counts. If somebody runs, waits at most `wait` until it is
    /// settled or its lease has lapsed, and hands it back as it is then. Never counts as a duplicate.
    pub async fn get_settled(&self, id: RecordId, wait: Duration) -> Result<Option<Record>> {
        let started_at = Instant::now();
        let until = started_at.checked_add(wait).unwrap_or(started_at);
        let place = self.inner.waiters.join(id);
        loop {
            let mut settled = std::pin::pin!(place.notify.notified());
            settled.as_mut().enable();
            let (record, now) = self.look(id).await?;
            let is_worth_it =
                record.as_ref().is_some_and(|record| runs(record, now)) && Instant::now() < until;
            if !is_worth_it || !self.until_settled(id, settled, until).await? {
                return Ok(record.filter(|record| record.is_live(now)));
            }
        }
    }

    async fn look(&self, id: RecordId) -> Result<(Option<Record>, Timestamp)> {
        let answer = self.inner.store.load(vec![id]).await?;
        Ok((answer.value.into_iter().next().flatten(), answer.now))
    }
}

fn runs(record: &Record, now: Timestamp) -> bool {
    match &record.state {
        State::Running(running) => running.lease_is_good(now),
        State::Done(_) | State::Released(_) | State::Held(_) => false,
    }
}
