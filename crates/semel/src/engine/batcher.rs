//! Swaps of many callers in one round trip, and the one task a runtime that owns every reply on its way.
//!
//! No timers: a batch leaves when the one before it is back. A caller goes as far as the store answers at once, without
//! a task. What has to wait is handed to the driver of the caller's runtime, so a caller may be cancelled at any await:
//! what is in flight to a store goes on, and an answer that its caller no longer hears goes to `unheard`.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use super::semel::CLOSE_PATIENCE;
use super::swap_loop::{Heard, Next, Settled, SwapLoop};
use super::together::spread;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Key, RecordId};
use crate::lock::lock;
use crate::machine::Ruling;
use crate::record::{PermitId, Record};
use crate::store::{Answer, Loaded, Reply, Store, Swap, SwapReplies, Swaps};

/// How many swaps ride together at most.
const BATCH_SWAPS_MAX: usize = 1_024;
/// How many batches of one runtime are on their way at once before its callers queue up.
const IN_FLIGHT_MAX: usize = 2;

/// Rules on what was found.
pub(super) trait Rule<A>: FnMut(Option<&Record>, Timestamp) -> Ruling<A> + Send + 'static {}
impl<A, F: FnMut(Option<&Record>, Timestamp) -> Ruling<A> + Send + 'static> Rule<A> for F {}

/// The store of an engine, until the engine is closed.
struct OpenStore(Arc<dyn Store>);

/// Sends the asks of one engine.
pub(super) struct Batcher {
    store: ArcSwapOption<OpenStore>,
    /// How many batches are in flight on all runtimes: over a store that answers at once, always none.
    in_flight: AtomicUsize,
    drivers: Mutex<Vec<(tokio::runtime::Id, Arc<Driver>)>>,
}

impl Batcher {
    pub(super) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            store: ArcSwapOption::from_pointee(OpenStore(store)),
            in_flight: AtomicUsize::new(0),
            drivers: Mutex::default(),
        })
    }

    /// Rules on what is found, writes what the ruling says, and starts over if another caller wrote first.
    ///
    /// Goes as far as the store answers at once before it returns; the rest is the driver's. `unheard` makes what takes
    /// an answer that no caller is left to hear, from the key that it is about.
    pub(super) fn ask<A, R, U>(
        self: &Arc<Self>,
        mut swap_loop: SwapLoop<A, R>,
        unheard: impl FnOnce(&Key) -> U,
    ) -> PendingAsk<A, U>
    where
        A: Send + 'static,
        R: Rule<A>,
        U: FnOnce(Result<Settled<A>>) + Send + 'static,
    {
        match self.ask_now(&mut swap_loop) {
            Ok(answer) => PendingAsk(Form::Now(Some(answer))),
            Err(waits) => self.ask_later(swap_loop, waits, unheard),
        }
    }

    /// Goes as far as the store answers at once: to the answer, or to what has to be waited for.
    #[inline]
    pub(super) fn ask_now<A, R: Rule<A>>(
        &self,
        swap_loop: &mut SwapLoop<A, R>,
    ) -> std::result::Result<Result<Settled<A>>, Waits> {
        loop {
            let heard = match swap_loop.next().and_then(|next| self.take_step(next)) {
                Ok(AskStep::Answered(settled)) => return Ok(Ok(settled)),
                Ok(AskStep::Waits(waits)) => return Err(waits),
                Ok(AskStep::Heard(heard)) => swap_loop.hear(heard),
                Err(error) => Err(error),
            };
            if let Err(error) = heard {
                return Ok(Err(error));
            }
        }
    }

    /// Leaves the rest of an ask to the driver.
    pub(super) fn ask_later<A, R, U>(
        self: &Arc<Self>,
        swap_loop: SwapLoop<A, R>,
        waits: Waits,
        unheard: impl FnOnce(&Key) -> U,
    ) -> PendingAsk<A, U>
    where
        A: Send + 'static,
        R: Rule<A>,
        U: FnOnce(Result<Settled<A>>) + Send + 'static,
    {
        let (caller, receiver) = oneshot::channel();
        let unheard = unheard(swap_loop.key());
        match self.hand_over(waits, Box::new(Course { swap_loop, caller, unheard })) {
            Ok(()) => PendingAsk(Form::Later(receiver)),
            Err(error) => PendingAsk(Form::Now(Some(Err(error)))),
        }
    }

    /// Asks without a caller: the answer goes to `unheard`, whenever it comes. While a runtime shuts down there is none
    /// to ask on.
    pub(super) fn ask_unheard<A, R, U>(self: &Arc<Self>, swap_loop: SwapLoop<A, R>, unheard: U)
    where
        A: Send + 'static,
        R: Rule<A>,
        U: FnOnce(Result<Settled<A>>) + Send + 'static,
    {
        // By the driver from the start: a store that panics must not take along a caller that asked for nothing.
        let Ok(runtime) = Handle::try_current() else { return };
        let (caller, _) = oneshot::channel();
        let course = Box::new(Course { swap_loop, caller, unheard });
        let driver = self.driver(&runtime);
        driver.go_on(course.advance(None));
        driver.start(&runtime);
    }

    /// Goes one step, if the store answers at once.
    #[inline]
    fn take_step<A>(&self, next: Next<A>) -> Result<AskStep<A>> {
        Ok(match next {
            Next::Answer(settled) => AskStep::Answered(settled),
            Next::Pause(pause) => AskStep::Waits(Waits::Pause(pause)),
            Next::Load(id) => match self.send(|store| store.load(vec![id]))?.try_now() {
                Ok(answer) => AskStep::Heard(Heard::loaded(answer)),
                Err(reply) => AskStep::Waits(Waits::Load(reply)),
            },
            Next::Swap(swap) if self.in_flight.load(Ordering::Acquire) > 0 => {
                AskStep::Waits(Waits::Turn(swap))
            }
            Next::Swap(swap) => match self.send(|store| store.swap([swap].into()))?.try_now() {
                Ok(answer) => AskStep::Heard(Heard::swapped(answer)),
                Err(reply) => AskStep::Waits(Waits::Swap(reply)),
            },
        })
    }

    /// Drives a reply that is no swap of one record to its end, even if the caller goes away.
    pub(super) async fn finish<T: Send + Unpin + 'static>(
        self: &Arc<Self>,
        send: impl FnOnce(&dyn Store) -> Reply<T>,
    ) -> Result<Answer<T>> {
        let reply = match self.send(send)?.try_now() {
            Ok(answer) => return answer,
            Err(reply) => reply,
        };
        let runtime = Handle::try_current().map_err(|_| no_runtime())?;
        runtime.spawn(reply).await.map_err(|_| runtime_ended())?
    }

    /// Asks the store, unless the engine is closed. Without a handle of its own: one count for all threads would move
    /// between their cores.
    pub(super) fn send<T>(&self, send: impl FnOnce(&dyn Store) -> T) -> Result<T> {
        match &*self.store.load() {
            Some(open) => Ok(send(&*open.0)),
            None => Err(Error::new(
                ErrorKind::Unavailable,
                "this engine is closed, and nothing happened; build another one",
            )),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.store.load().is_some()
    }

    /// Refuses all asks from now on, waits for those in flight, and lets go of the store.
    pub(super) async fn close(&self) {
        let store = self.store.swap(None);
        let drivers: Vec<_> = lock(&self.drivers).iter().map(|(_, driver)| Arc::clone(driver)).collect();
        for driver in drivers {
            drop(tokio::time::timeout(CLOSE_PATIENCE, driver.until_idle()).await);
        }
        // The last handle of a store may have work to end: not on a thread that others wait for.
        let Some(store) = store else { return };
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn_blocking(move || drop(store)).await);
        }
    }

    fn hand_over(self: &Arc<Self>, waits: Waits, course: Box<dyn Answerable>) -> Result<()> {
        let runtime = Handle::try_current().map_err(|_| no_runtime())?;
        let driver = self.driver(&runtime);
        if driver.take_in(waits, course) == Task::Acts {
            driver.start(&runtime);
        }
        Ok(())
    }

    /// The driver of a runtime.
    fn driver(self: &Arc<Self>, runtime: &Handle) -> Arc<Driver> {
        let mut drivers = lock(&self.drivers);
        if let Some((_, driver)) = drivers.iter().find(|(id, _)| *id == runtime.id()) {
            return Arc::clone(driver);
        }
        // Drivers of runtimes that have ended are only a few bytes, but not for ever.
        drivers.retain(|(_, driver)| driver.is_driven());
        let driver = Arc::new(Driver::new(self));
        drivers.push((runtime.id(), Arc::clone(&driver)));
        driver
    }
}

/// The result of one step.
enum AskStep<A> {
    Answered(Settled<A>),
    Heard(Heard),
    Waits(Waits),
}

/// What an ask waits for.
pub(super) enum Waits {
    Load(Reply<Vec<Loaded>>),
    Swap(Reply<SwapReplies>),
    Turn(Swap),
    Pause(Duration),
}

/// An ask that is answered already, or on its way.
pub(super) struct PendingAsk<A, U: FnOnce(Result<Settled<A>>)>(Form<A, U>);

enum Form<A, U: FnOnce(Result<Settled<A>>)> {
    Now(Option<Result<Settled<A>>>),
    Later(oneshot::Receiver<Delivery<A, U>>),
}

impl<A, U: FnOnce(Result<Settled<A>>)> PendingAsk<A, U> {
    /// The same ask; if its reply is lost for good, the error names the permit to ask again with.
    pub(super) async fn under(self, permit_id: PermitId) -> Result<Settled<A>>
    where
        A: Unpin,
        U: Unpin,
    {
        self.await.map_err(|error| {
            if error.kind() == ErrorKind::Unknown { error.with_permit_id(permit_id) } else { error }
        })
    }
}

impl<A: Unpin, U: FnOnce(Result<Settled<A>>) + Unpin> Future for PendingAsk<A, U> {
    type Output = Result<Settled<A>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Form::Now(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
            Form::Later(receiver) => Pin::new(receiver)
                .poll(context)
                .map(|delivered| delivered.map_or_else(|_| Err(runtime_ended()), Delivery::take)),
        }
    }
}

/// An answer on its way to its caller. Dropped anywhere on it, also in a channel that is never read, it is unheard.
pub(super) struct Delivery<A, U: FnOnce(Result<Settled<A>>)>(Option<(Result<Settled<A>>, U)>);

impl<A, U: FnOnce(Result<Settled<A>>)> Delivery<A, U> {
    fn take(mut self) -> Result<Settled<A>> {
        self.0.take().map_or_else(|| Err(runtime_ended()), |(answer, _)| answer)
    }
}

impl<A, U: FnOnce(Result<Settled<A>>)> Drop for Delivery<A, U> {
    fn drop(&mut self) {
        if let Some((answer, unheard)) = self.0.take() {
            unheard(answer);
        }
    }
}

/// An ask that is in the driver's hands.
struct Course<A, R, U: FnOnce(Result<Settled<A>>)> {
    swap_loop: SwapLoop<A, R>,
    caller: oneshot::Sender<Delivery<A, U>>,
    unheard: U,
}

/// A course, whatever it is about.
trait Answerable: Send {
    /// Takes in what was heard, and says what to ask next; `None` once the caller has its answer.
    fn advance(self: Box<Self>, heard: Option<Heard>) -> Option<(StoreCall, Box<dyn Answerable>)>;
}

/// What a course wants of the store.
enum StoreCall {
    Load(RecordId),
    Swap(Swap),
    Pause(Duration),
}

impl<A, R, U> Answerable for Course<A, R, U>
where
    A: Send + 'static,
    R: Rule<A>,
    U: FnOnce(Result<Settled<A>>) + Send + 'static,
{
    fn advance(mut self: Box<Self>, heard: Option<Heard>) -> Option<(StoreCall, Box<dyn Answerable>)> {
        let told = heard.map_or(Ok(()), |heard| self.swap_loop.hear(heard));
        let answer = match told.and_then(|()| self.swap_loop.next()) {
            Ok(Next::Load(id)) => return Some((StoreCall::Load(id), self)),
            Ok(Next::Swap(swap)) => return Some((StoreCall::Swap(swap), self)),
            Ok(Next::Pause(pause)) => return Some((StoreCall::Pause(pause), self)),
            Ok(Next::Answer(settled)) => Ok(settled),
            Err(error) => Err(error),
        };
        // If the receiver is gone, the answer comes back here and is dropped: unheard.
        drop(self.caller.send(Delivery(Some((answer, self.unheard)))));
        None
    }
}

/// Owns what is on its way on one runtime.
struct Driver {
    batcher: Weak<Batcher>,
    queue: Mutex<Queue>,
    /// Wakes the task: something was taken in.
    signal: Arc<Notify>,
    idle: Notify,
}

#[derive(Default)]
struct Queue {
    /// Swaps that ride with the next batch.
    waiting: VecDeque<(Swap, Box<dyn Answerable>)>,
    /// Replies that the task has yet to take over.
    handed: Vec<Flight>,
    /// How many batches are in flight.
    batches: usize,
    /// How many courses the task has, in flight or pausing.
    courses: usize,
    is_driven: bool,
}

/// Whether the task has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Acts,
    /// Nothing changes for it until a batch lands.
    Waits,
}

/// Something on its way.
enum Flight {
    Load(Reply<Vec<Loaded>>, Box<dyn Answerable>),
    Swaps(Reply<SwapReplies>, Vec<Box<dyn Answerable>>),
    Pause(Duration, Box<dyn Answerable>),
}

/// A reply that arrived.
enum Landed {
    Load(Heard, Box<dyn Answerable>),
    Swaps(Result<Answer<SwapReplies>>, Vec<Box<dyn Answerable>>),
    Pause(Box<dyn Answerable>),
}

impl Flight {
    fn courses(&self) -> usize {
        match self {
            Self::Load(..) | Self::Pause(..) => 1,
            Self::Swaps(_, courses) => courses.len(),
        }
    }

    async fn land(self) -> Landed {
        match self {
            Self::Load(reply, course) => Landed::Load(Heard::loaded(reply.await), course),
            Self::Swaps(reply, courses) => Landed::Swaps(reply.await, courses),
            Self::Pause(pause, course) => {
                tokio::time::sleep(pause).await;
                Landed::Pause(course)
            }
        }
    }
}

impl Driver {
    fn new(batcher: &Arc<Batcher>) -> Self {
        Self {
            batcher: Arc::downgrade(batcher),
            queue: Mutex::default(),
            signal: Arc::default(),
            idle: Notify::new(),
        }
    }

    fn is_driven(&self) -> bool {
        lock(&self.queue).is_driven
    }

    fn take_in(&self, waits: Waits, course: Box<dyn Answerable>) -> Task {
        let mut queue = lock(&self.queue);
        match waits {
            Waits::Load(reply) => queue.hand(Flight::Load(reply, course)),
            Waits::Pause(pause) => queue.hand(Flight::Pause(pause, course)),
            Waits::Turn(swap) => {
                queue.waiting.push_back((swap, course));
                if queue.is_driven && !queue.has_batch() {
                    return Task::Waits;
                }
            }
            Waits::Swap(reply) => {
                self.count_batch(&mut queue);
                queue.hand(Flight::Swaps(reply, vec![course]));
            }
        }
        Task::Acts
    }

    /// Starts the task, or wakes it.
    fn start(self: &Arc<Self>, runtime: &Handle) {
        let is_driven = std::mem::replace(&mut lock(&self.queue).is_driven, true);
        if is_driven {
            self.signal.notify_one();
        } else {
            runtime.spawn(drive(Driven(Arc::downgrade(self)), Arc::clone(&self.signal)));
        }
    }

    fn count_batch(&self, queue: &mut Queue) {
        queue.batches = queue.batches.saturating_add(1);
        if let Some(batcher) = self.batcher.upgrade() {
            batcher.in_flight.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn uncount_batches(&self, queue: &mut Queue, batches: usize) {
        queue.batches = queue.batches.saturating_sub(batches);
        if let Some(batcher) = self.batcher.upgrade() {
            batcher.in_flight.fetch_sub(batches, Ordering::AcqRel);
        }
    }

    /// What is to be waited for next: replies that were handed over, and a batch of what queued up if there is room for
    /// one. Checked under one lock, so that a swap which queues while the last batch lands is not forgotten.
    fn next_flights(&self) -> Vec<Flight> {
        let mut queue = lock(&self.queue);
        let mut flights = std::mem::take(&mut queue.handed);
        while queue.has_batch() {
            let ride = queue.waiting.len().min(BATCH_SWAPS_MAX);
            let (swaps, courses): (Swaps, Vec<_>) = queue.waiting.drain(..ride).unzip();
            let reply = self.send(|store| store.swap(swaps));
            self.count_batch(&mut queue);
            queue.courses = queue.courses.saturating_add(courses.len());
            flights.push(Flight::Swaps(reply, courses));
        }
        if queue.courses == 0 && queue.waiting.is_empty() {
            self.idle.notify_waiters();
        }
        flights
    }

    /// Hands each course its reply, and takes in what it wants next.
    fn land(&self, landed: Landed) {
        match landed {
            Landed::Load(heard, course) => {
                self.finish_courses(1, 0);
                self.go_on(course.advance(Some(heard)));
            }
            Landed::Pause(course) => {
                self.finish_courses(1, 0);
                self.go_on(course.advance(None));
            }
            Landed::Swaps(answer, courses) => {
                self.finish_courses(courses.len(), 1);
                let asked = courses.len();
                for (course, one) in courses.into_iter().zip(spread(answer, asked)) {
                    self.go_on(course.advance(Some(Heard::Swapped(one))));
                }
            }
        }
    }

    fn finish_courses(&self, courses: usize, batches: usize) {
        let mut queue = lock(&self.queue);
        queue.courses = queue.courses.saturating_sub(courses);
        self.uncount_batches(&mut queue, batches);
    }

    fn go_on(&self, wanted: Option<(StoreCall, Box<dyn Answerable>)>) {
        let Some((wanted, course)) = wanted else { return };
        let waits = match wanted {
            StoreCall::Swap(swap) => Waits::Turn(swap),
            StoreCall::Pause(pause) => Waits::Pause(pause),
            StoreCall::Load(id) => Waits::Load(self.send(|store| store.load(vec![id]))),
        };
        // The task is the caller, or is started by it.
        let _ = self.take_in(waits, course);
    }

    /// Asks the store; an engine that is closed or gone is an answer too.
    fn send<T>(&self, send: impl FnOnce(&dyn Store) -> Reply<T>) -> Reply<T> {
        let Some(batcher) = self.batcher.upgrade() else { return Reply::ready(Err(runtime_ended())) };
        batcher.send(send).unwrap_or_else(|closed| Reply::ready(Err(closed)))
    }

    async fn until_idle(&self) {
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            idle.as_mut().enable();
            {
                let queue = lock(&self.queue);
                if !queue.is_driven || (queue.courses == 0 && queue.waiting.is_empty()) {
                    return;
                }
            }
            idle.await;
        }
    }
}

impl Queue {
    /// Whether a batch should leave now: at once if none is on its way; beside another one only if it is about as large,
    /// or else every large batch would be followed by one of a few swaps.
    fn has_batch(&self) -> bool {
        let waiting = self.waiting.len();
        match self.batches {
            0 => waiting > 0,
            IN_FLIGHT_MAX.. => false,
            _ => waiting > 0 && waiting >= self.courses / 2,
        }
    }

    fn hand(&mut self, flight: Flight) {
        self.courses = self.courses.saturating_add(flight.courses());
        self.handed.push(flight);
    }
}

/// The task of one driver. While nothing is on its way it holds nothing, and ends with the engine.
async fn drive(driven: Driven, signal: Arc<Notify>) {
    let mut flights = FuturesUnordered::new();
    loop {
        let Some(held) = driven.0.upgrade() else { return };
        flights.extend(held.next_flights().into_iter().map(Flight::land));
        if flights.is_empty() {
            drop(held);
            signal.notified().await;
            continue;
        }
        tokio::select! {
            Some(landed) = flights.next() => held.land(landed),
            () = signal.notified() => {}
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The task ends once it finds its driver gone.
        self.signal.notify_one();
    }
}

/// Marks a driver whose task is gone, with its runtime: what was on its way is unknown, and the next ask starts anew.
struct Driven(Weak<Driver>);

impl Drop for Driven {
    fn drop(&mut self) {
        let Some(driver) = self.0.upgrade() else { return };
        let (waiting, handed) = {
            let mut queue = lock(&driver.queue);
            queue.is_driven = false;
            queue.courses = 0;
            let batches = queue.batches;
            driver.uncount_batches(&mut queue, batches);
            (std::mem::take(&mut queue.waiting), std::mem::take(&mut queue.handed))
        };
        driver.idle.notify_waiters();
        // Not under the lock: an answer that is dropped may ask again.
        drop((waiting, handed));
    }
}

pub(super) fn runtime_ended() -> Error {
    Error::new(ErrorKind::Unknown, "the runtime stopped before the store answered; ask again")
}

fn no_runtime() -> Error {
    let message = "there is no tokio runtime to wait for the store's answer; ask again from within one";
    Error::new(ErrorKind::Unknown, message)
}
