//! What an engine does by itself: sweep, write counts, and keep leases while work runs.
//!
//! Each is a task on the runtime of the caller that needed it first. If that runtime ends before the engine does, the
//! next call on the engine starts the task anew on its own runtime ([`Upkeep::attend`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use super::duplicate_counts::{GATHER, TRY_AGAIN};
use super::permit::{Permit, Renewal};
use super::semel::Engine;
use super::sweeper::{SweepPolicy, SweepReport, sweep_round};
use crate::error::ErrorKind;
use crate::lock::lock;

pub(super) struct Upkeep {
    sweeping: SweepPolicy,
    reports: watch::Sender<SweepReport>,
    /// Whether a call should look after the tasks: one is not running that should be.
    is_wanted: AtomicBool,
    tasks: Mutex<Tasks>,
    stop: Arc<Notify>,
    stopped: Notify,
}

#[derive(Default)]
struct Tasks {
    is_running: bool,
    is_closed: bool,
    /// Heartbeats whose runtime ended before they did.
    orphans: Vec<Arc<Beat>>,
}

impl Upkeep {
    pub(super) fn new(sweeping: SweepPolicy) -> Self {
        Self {
            sweeping,
            reports: watch::Sender::default(),
            is_wanted: AtomicBool::new(true),
            tasks: Mutex::default(),
            stop: Arc::default(),
            stopped: Notify::new(),
        }
    }

    pub(super) fn reports(&self) -> watch::Receiver<SweepReport> {
        self.reports.subscribe()
    }

    /// Starts what should run and does not. Called on every ask, so the common case is one read.
    #[inline]
    pub(super) fn attend(&self, engine: &Arc<Engine>) {
        if self.is_wanted.load(Ordering::Relaxed) {
            self.start(engine);
        }
    }

    #[cold]
    fn start(&self, engine: &Arc<Engine>) {
        // Without a runtime there is nothing to start them on; a later call has one.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut tasks = lock(&self.tasks);
        if tasks.is_closed {
            return;
        }
        self.is_wanted.store(false, Ordering::Relaxed);
        for beat in std::mem::take(&mut tasks.orphans) {
            beat.spawn(&runtime);
        }
        if !std::mem::replace(&mut tasks.is_running, true) {
            drop(tasks);
            runtime.spawn(keep_up(Alive(Arc::downgrade(engine))));
        }
    }

    /// Ends all of it, and waits until it has ended.
    pub(super) async fn close(&self) {
        loop {
            let mut stopped = std::pin::pin!(self.stopped.notified());
            stopped.as_mut().enable();
            {
                let mut tasks = lock(&self.tasks);
                tasks.is_closed = true;
                tasks.orphans.clear();
                if !tasks.is_running {
                    return;
                }
            }
            self.stop.notify_one();
            stopped.await;
        }
    }

    fn is_closed(&self) -> bool {
        lock(&self.tasks).is_closed
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

/// The task that sweeps and writes counts, while its engine lives. Dropped with its runtime, it is wanted again.
struct Alive(Weak<Engine>);

impl Drop for Alive {
    fn drop(&mut self) {
        if let Some(engine) = self.0.upgrade() {
            lock(&engine.upkeep.tasks).is_running = false;
            engine.upkeep.is_wanted.store(true, Ordering::Relaxed);
            engine.upkeep.stopped.notify_waiters();
        }
    }
}

async fn keep_up(alive: Alive) {
    let Some(engine) = alive.0.upgrade() else { return };
    let (stop, something_to_write) =
        (Arc::clone(&engine.upkeep.stop), Arc::clone(&engine.duplicates.something_to_write));
    let mut next_sweep = engine.upkeep.sweeping.first(Instant::now());
    // What was gathered on a runtime that has ended sends no second signal.
    let mut next_counts = if engine.duplicates.rest() { None } else { Instant::now().checked_add(GATHER) };
    let mut round: u64 = 0;
    drop(engine);
    loop {
        // The engine is not held meanwhile: it ends when its last handle does.
        let due = [next_sweep, next_counts].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = stop.notified() => return,
            () = something_to_write.notified(), if next_counts.is_none() => {
                next_counts = Instant::now().checked_add(GATHER);
            }
            () = until(due) => {}
        }
        let Some(engine) = alive.0.upgrade() else { return };
        let now = Instant::now();
        if next_counts.is_some_and(|due| due <= now) {
            if let Err(error) = engine.duplicates.write_some(&engine.batcher).await {
                tracing::debug!(%error, "semel: counts of duplicates will be written later");
            }
            next_counts = if engine.duplicates.rest() { None } else { Instant::now().checked_add(TRY_AGAIN) };
        }
        if next_sweep.is_some_and(|due| due <= now) {
            round = round.saturating_add(1);
            let batch = engine.upkeep.sweeping.batch;
            let report = sweep_round(&engine, round, batch, || engine.upkeep.is_closed()).await;
            engine.upkeep.reports.send_replace(report);
            next_sweep = engine.upkeep.sweeping.next(Instant::now());
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Keeps a lease until it is dropped. Dropping it does not release the permit.
#[must_use = "the lease is renewed only while this lives"]
pub struct Heartbeat {
    beat: Option<Arc<Beat>>,
}

struct Beat {
    permit: Permit,
    is_over: AtomicBool,
    over: Notify,
}

impl Heartbeat {
    pub(super) fn start(permit: &Permit) -> Self {
        if permit.is_unprotected() {
            return Self { beat: None };
        }
        let (permit, is_over) = (permit.clone(), AtomicBool::new(false));
        let beat = Arc::new(Beat { permit, is_over, over: Notify::new() });
        match Handle::try_current() {
            Ok(runtime) => beat.spawn(&runtime),
            Err(_) => beat.orphan(),
        }
        Self { beat: Some(beat) }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        if let Some(beat) = &self.beat {
            beat.end();
        }
    }
}

impl Beat {
    fn spawn(self: &Arc<Self>, runtime: &Handle) {
        runtime.spawn(keep_lease(Beating(Arc::clone(self))).in_current_span());
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.over.notify_one();
    }

    /// Leaves the heartbeat to the next call on the engine.
    fn orphan(self: &Arc<Self>) {
        let upkeep = &self.permit.engine().upkeep;
        let mut tasks = lock(&upkeep.tasks);
        if !tasks.is_closed && !self.is_over.load(Ordering::Acquire) {
            tasks.orphans.push(Arc::clone(self));
            upkeep.is_wanted.store(true, Ordering::Relaxed);
        }
    }
}

/// A heartbeat's task. Dropped before the heartbeat is over, its runtime has ended.
struct Beating(Arc<Beat>);

impl Drop for Beating {
    fn drop(&mut self) {
        self.0.orphan();
    }
}

async fn keep_lease(beating: Beating) {
    let beat = &beating.0;
    let permit = &beat.permit;
    let third = permit.lease().div_f64(3.0);
    let soon = third.div_f64(8.0);
    while !beat.is_over.load(Ordering::Acquire) && !permit.engine().upkeep.is_closed() {
        let now = Instant::now();
        let due = permit.good_until().checked_sub(third.saturating_mul(2)).unwrap_or(now);
        // After a failed renewal the due moment is past: try again soon, not at once.
        let due = due.max(now.checked_add(soon).unwrap_or(now));
        tokio::select! {
            biased;
            () = beat.over.notified() => continue,
            () = sleep_until(due) => {}
        }
        match permit.renew().await {
            Ok(Renewal::Renewed) => {}
            Ok(Renewal::Done) => beat.end(),
            Err(error) if error.kind() == ErrorKind::Lost => beat.end(),
            Err(error) => {
                tracing::warn!(key = %permit.key().id().short(), %error, "semel: the lease was not renewed");
            }
        }
    }
    beat.is_over.store(true, Ordering::Release);
}
