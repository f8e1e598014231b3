//! A store whose calls stop where a test says, so that two actors interleave as the test wants.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use semel::store::{Answer, Loaded, Page, Reply, Scan, Store, SwapReplies, Swaps, Swept};
use semel::{Error, ErrorKind, RecordId, Result};
use tokio::sync::watch;

use crate::faulty::Call;

/// A store whose calls stop at points that a test names, until the test lets them go on.
///
/// It needs no clock and no sleeps, so it also works while tokio's clock is paused. A call that is not stopped is passed on
/// unchanged: a reply that is ready stays ready. Clones share everything. To stop the calls of one actor only, give each
/// actor a `PausingStore` of its own over the same store.
///
/// ```
/// use std::sync::Arc;
///
/// use semel::store::MemoryStore;
/// use semel::{Claim, Decision, ErrorKind, Key, Semel};
/// use semel_testkit::{Call, PausingStore, Point};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> semel::Result<()> {
/// let memory = Arc::new(MemoryStore::new());
/// let store = PausingStore::new(memory.clone());
/// let slow = Semel::builder(store.clone()).build()?;
/// let fast = Semel::builder_shared(memory).build()?;
/// let key = Key::new("charge", "order-1")?;
///
/// // The slow caller's swap is about to be sent ...
/// let stop = store.stop_at(Point::BeforeSwap.about(key.id()));
/// let claim = Claim::new(&key);
/// let claiming = tokio::spawn(async move { slow.claim(claim).await });
/// assert_eq!(stop.reached().await, [key.id()]);
///
/// // ... when another caller is granted the key.
/// assert!(matches!(fast.claim(Claim::new(&key)).await?, Decision::Run(_)));
/// stop.go_on();
/// assert!(matches!(claiming.await.unwrap()?, Decision::Busy { .. }));
/// assert_eq!(store.count(Call::Swap), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PausingStore {
    store: Arc<dyn Store>,
    shared: Arc<Shared>,
}

/// Where a call can be stopped.
///
/// Before: the store has not heard of the call. After: the store has answered, and the caller does not know yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "before and after each method of a store, as said above")]
pub enum Point {
    BeforeSwap,
    AfterSwap,
    BeforeLoad,
    AfterLoad,
    BeforeSweep,
    AfterSweep,
    BeforeScan,
    AfterScan,
}

/// Which call to stop, and where: the next one at a [`Point`], unless this says more.
#[derive(Clone, Copy, Debug)]
pub struct StopAt {
    point: Point,
    id: Option<RecordId>,
    /// How many matching calls pass before the one that is stopped.
    skip: usize,
}

impl Point {
    /// Only a call whose batch has this record.
    pub fn about(self, id: RecordId) -> StopAt {
        StopAt::from(self).about(id)
    }

    /// Only the `n`-th call from now on, starting at 1.
    pub fn nth(self, n: usize) -> StopAt {
        StopAt::from(self).nth(n)
    }

    fn before(call: Call) -> Self {
        match call {
            Call::Swap => Self::BeforeSwap,
            Call::Load => Self::BeforeLoad,
            Call::Sweep => Self::BeforeSweep,
            Call::Scan => Self::BeforeScan,
        }
    }

    fn after(call: Call) -> Self {
        match call {
            Call::Swap => Self::AfterSwap,
            Call::Load => Self::AfterLoad,
            Call::Sweep => Self::AfterSweep,
            Call::Scan => Self::AfterScan,
        }
    }
}

impl StopAt {
    /// Only a call whose batch has this record.
    #[must_use]
    pub fn about(mut self, id: RecordId) -> Self {
        self.id = Some(id);
        self
    }

    /// Only the `n`-th call that matches otherwise, starting at 1 and counted from now on.
    #[must_use]
    pub fn nth(mut self, n: usize) -> Self {
        self.skip = n.saturating_sub(1);
        self
    }

    fn matches(&self, point: Point, ids: &[RecordId]) -> bool {
        self.point == point && self.id.is_none_or(|id| ids.contains(&id))
    }
}

impl From<Point> for StopAt {
    fn from(point: Point) -> Self {
        Self { point, id: None, skip: 0 }
    }
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MadeCall {
    /// Which method.
    pub call: Call,
    /// The records of the batch, in its order; none for a sweep or a scan.
    pub ids: Vec<RecordId>,
}

impl PausingStore {
    /// Passes calls on to `store`, and stops none until [`stop_at`](Self::stop_at).
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, shared: Arc::default() }
    }

    /// Stops the next call that matches. Each stop takes one call: of two stops at one point, the earlier takes the first
    /// call, and the later does not count it.
    pub fn stop_at(&self, at: impl Into<StopAt>) -> Stop {
        let waiting =
            Arc::new(Waiting { reached: watch::Sender::new(None), verdict: watch::Sender::new(None) });
        self.shared.lock().armed.push((at.into(), Arc::clone(&waiting)));
        Stop { waiting }
    }

    /// Every call until now, in the order in which they were made, whether stopped or not.
    pub fn calls(&self) -> Vec<MadeCall> {
        self.shared.lock().calls.clone()
    }

    /// How often a method was called.
    pub fn count(&self, call: Call) -> usize {
        self.shared.lock().calls.iter().filter(|made| made.call == call).count()
    }

    /// The ids of each batch of this method, in the order of the calls.
    pub fn batches(&self, call: Call) -> Vec<Vec<RecordId>> {
        let made = &self.shared.lock().calls;
        made.iter().filter(|made| made.call == call).map(|made| made.ids.clone()).collect()
    }

    /// Counts from zero again.
    pub fn forget_calls(&self) {
        self.shared.lock().calls.clear();
    }

    fn through<T: Send + Unpin + 'static>(
        &self,
        call: Call,
        ids: Vec<RecordId>,
        ask: impl FnOnce(&dyn Store) -> Reply<T> + Send + 'static,
    ) -> Reply<T> {
        self.shared.lock().calls.push(MadeCall { call, ids: ids.clone() });
        let Some(before) = self.shared.take(Point::before(call), &ids) else {
            // Asked here and not when the reply is polled, as it would be without this wrapper.
            let after = self.shared.take(Point::after(call), &ids);
            let reply = ask(&*self.store);
            return match after {
                None => reply,
                Some(after) => Reply::later(async move { after.pass(ids, reply.await).await }),
            };
        };
        let (store, shared) = (Arc::clone(&self.store), Arc::clone(&self.shared));
        Reply::later(async move {
            before.hold(ids.clone()).await?;
            // Taken only now: a call that ends before the store hears of it is never after it.
            let after = shared.take(Point::after(call), &ids);
            let answer = ask(&*store).await;
            match after {
                None => answer,
                Some(after) => after.pass(ids, answer).await,
            }
        })
    }
}

impl Store for PausingStore {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let ids = batch.iter().map(semel::store::Swap::id).collect();
        self.through(Call::Swap, ids, move |store| store.swap(batch))
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        self.through(Call::Load, ids.clone(), move |store| store.load(ids))
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.through(Call::Sweep, Vec::new(), move |store| store.sweep(limit))
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.through(Call::Scan, Vec::new(), move |store| store.scan(scan))
    }
}

impl fmt::Debug for PausingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PausingStore").field("calls", &self.calls()).finish_non_exhaustive()
    }
}

/// One stop of one call.
///
/// What becomes of the call can also be said before it is made: `store.stop_at(Point::AfterSwap).lose_reply()` loses the
/// reply of the next swap. If this is dropped, the call goes on, or is not stopped at all.
#[derive(Debug)]
#[must_use = "a stop that is dropped stops nothing"]
pub struct Stop {
    waiting: Arc<Waiting>,
}

impl Stop {
    /// Waits until a call has stopped here, and returns the ids of its batch.
    pub async fn reached(&self) -> Vec<RecordId> {
        let mut reached = self.waiting.reached.subscribe();
        // The sender lives as long as this stop.
        let ids = reached.wait_for(Option::is_some).await.ok().and_then(|ids| ids.clone());
        ids.unwrap_or_default()
    }

    /// Whether a call has stopped here.
    pub fn is_reached(&self) -> bool {
        self.waiting.reached.borrow().is_some()
    }

    /// Lets the call go on as if it had never stopped.
    pub fn go_on(self) {
        self.waiting.decide(Verdict::GoOn);
    }

    /// Fails the call with [`ErrorKind::Unknown`]. At a point before the call, the store never hears of it; at a point
    /// after it, the store has done what it was asked. The caller cannot tell which.
    pub fn lose_reply(self) {
        self.waiting.decide(Verdict::LoseReply);
    }

    /// Fails the call with [`ErrorKind::Unavailable`], which means that nothing happened. That is true at a point before
    /// the call; at a point after a swap it makes a store that breaks its contract.
    pub fn refuse(self) {
        self.waiting.decide(Verdict::Refuse);
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        // A verdict that was given stands.
        self.waiting.decide(Verdict::GoOn);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    GoOn,
    LoseReply,
    Refuse,
}

/// What a stop and the call that it stops share.
#[derive(Debug)]
struct Waiting {
    /// The ids of the batch, once a call is here.
    reached: watch::Sender<Option<Vec<RecordId>>>,
    verdict: watch::Sender<Option<Verdict>>,
}

impl Waiting {
    /// The first verdict counts.
    fn decide(&self, verdict: Verdict) {
        self.verdict.send_if_modified(|given| {
            let first = given.is_none();
            given.get_or_insert(verdict);
            first
        });
    }

    fn is_dismissed(&self) -> bool {
        *self.verdict.borrow() == Some(Verdict::GoOn)
    }

    /// Waits for the verdict; an error if the call is to fail.
    async fn hold(&self, ids: Vec<RecordId>) -> Result<()> {
        self.reached.send_replace(Some(ids));
        let mut verdict = self.verdict.subscribe();
        let verdict = verdict.wait_for(Option::is_some).await.ok().and_then(|given| *given);
        match verdict {
            Some(Verdict::GoOn) | None => Ok(()),
            Some(Verdict::LoseReply) => Err(Error::new(ErrorKind::Unknown, "the reply was lost; ask again")),
            Some(Verdict::Refuse) => {
                Err(Error::new(ErrorKind::Unavailable, "the store was not reached; ask again"))
            }
        }
    }

    async fn pass<T>(&self, ids: Vec<RecordId>, answer: Result<Answer<T>>) -> Result<Answer<T>> {
        self.hold(ids).await?;
        answer
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<PausingState>,
}

#[derive(Default)]
struct PausingState {
    calls: Vec<MadeCall>,
    armed: Vec<(StopAt, Arc<Waiting>)>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, PausingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stop that takes a call at this point, if there is one.
    fn take(&self, point: Point, ids: &[RecordId]) -> Option<Arc<Waiting>> {
        let armed = &mut self.lock().armed;
        armed.retain(|(_, waiting)| !waiting.is_dismissed());
        let taker = armed.iter_mut().position(|(at, _)| {
            let matches = at.matches(point, ids);
            let takes = matches && at.skip == 0;
            at.skip = at.skip.saturating_sub(usize::from(matches));
            takes
        });
        taker.map(|index| armed.remove(index).1)
    }
}
