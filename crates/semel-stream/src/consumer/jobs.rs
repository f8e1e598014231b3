//! The events in hand, each in its place: in line, ready, running, or waiting for its time.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::{self, Display as _};
use std::sync::Arc;

use semel::machine::offset::Position;
use semel::machine::waiting::Waiting;
use semel::{Fingerprint, Key};
use tokio::time::Instant;

use super::choices::Lane;
use super::watch::At;
use crate::event::Event;
use crate::source::Tag;

/// One delivery of an event.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) stream: Arc<str>,
    /// Which time this consumer reads the stream: what was delivered the time before does not count.
    pub(super) generation: u64,
    pub(super) position: Option<Position>,
    pub(super) tag: Tag,
    pub(super) key: Option<Arc<str>>,
    /// What the broker calls it.
    pub(super) id: Option<Box<str>>,
}

impl Placed {
    pub(super) fn at(&self) -> At<'_> {
        At { stream: &self.stream, position: self.position, key: self.key.as_deref() }
    }
}

/// An event in hand, with all its deliveries: one that is delivered again while it is being processed is the same job.
pub(super) struct Job {
    pub(super) event: Arc<Event>,
    /// The event's key, or its place if it has none.
    pub(super) key: Arc<str>,
    pub(super) has_key: bool,
    /// The key of the record of this run; `None` where the event is processed without protection.
    pub(super) receipt: Option<Key>,
    /// What it is called in the list of requeues; `None` where the source delivered it.
    pub(super) requeue: Option<Waiting>,
    pub(super) fingerprint: Option<Fingerprint>,
    /// Why it is put aside instead of being processed.
    pub(super) refused: Option<String>,
    pub(super) lane: Option<Lane>,
    pub(super) deliveries: Vec<Placed>,
    /// How often its handler failed.
    pub(super) failures: u32,
    /// How often in a row it had to wait for somebody else.
    pub(super) waits: u32,
    pub(super) stage: Stage,
}

impl Job {
    /// What a log may say of its key.
    pub(super) fn short(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| match &self.receipt {
            Some(key) => key.id().short().fmt(f),
            None => f.write_str("none"),
        })
    }
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nobody knows yet whether it has a receipt.
    Looked,
    /// It may run as soon as those before it in its lane are done.
    InLine,
    /// It may run.
    Ready,
    /// It runs.
    Running,
    /// It may run again at this time.
    Waiting(Instant),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct JobId(u64);

/// All events in hand.
#[derive(Default)]
pub(super) struct Jobs {
    by_id: HashMap<JobId, Job>,
    last: u64,
    by_key: HashMap<Arc<str>, JobId>,
    lanes: HashMap<Lane, VecDeque<JobId>>,
    ready: VecDeque<JobId>,
    waiting: BTreeSet<(Instant, JobId)>,
    running: usize,
    /// How many stand in line behind one that waits.
    held_up: usize,
}

impl Jobs {
    /// The job that this delivery is one more of: the same key, and not another payload.
    pub(super) fn twin(&mut self, key: &str, fingerprint: Option<Fingerprint>) -> Option<&mut Job> {
        let job = self.by_id.get_mut(self.by_key.get(key)?)?;
        (job.fingerprint == fingerprint).then_some(job)
    }

    pub(super) fn add(&mut self, job: Job) -> JobId {
        self.last = self.last.wrapping_add(1);
        let id = JobId(self.last);
        // A delivery of a requeued event is a duplicate of the first run, and no part of this one.
        if job.has_key && job.requeue.is_none() {
            self.by_key.entry(Arc::clone(&job.key)).or_insert(id);
        }
        if let Some(lane) = &job.lane {
            let is_held_up = self.is_held_up(lane);
            self.lanes.entry(lane.clone()).or_default().push_back(id);
            self.held_up = self.held_up.saturating_add(usize::from(is_held_up));
        }
        self.by_id.insert(id, job);
        id
    }

    pub(super) fn get(&self, id: JobId) -> Option<&Job> {
        self.by_id.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.by_id.get_mut(&id)
    }

    /// It may run, as far as its own history goes.
    pub(super) fn admit(&mut self, id: JobId) {
        let Some(job) = self.by_id.get_mut(&id) else { return };
        let is_first = job.lane.as_ref().is_none_or(|lane| {
            self.lanes.get(lane).and_then(VecDeque::front).is_none_or(|first| *first == id)
        });
        job.stage = if is_first { Stage::Ready } else { Stage::InLine };
        if is_first {
            self.ready.push_back(id);
        }
    }

    /// The next that may run; it counts as running from now on.
    pub(super) fn start_next(&mut self) -> Option<(JobId, &mut Job)> {
        loop {
            let id = self.ready.pop_front()?;
            // Jobs that were taken out while they were ready are passed over.
            if self.by_id.contains_key(&id) {
                self.running = self.running.saturating_add(1);
                let job = self.by_id.get_mut(&id)?;
                job.stage = Stage::Running;
                return Some((id, job));
            }
        }
    }

    /// It no longer runs, and may run again at this time; those behind it wait, too.
    pub(super) fn wait(&mut self, id: JobId, until: Instant) {
        let Some(job) = self.by_id.get_mut(&id) else { return };
        self.running = self.running.saturating_sub(1);
        job.stage = Stage::Waiting(until);
        self.waiting.insert((until, id));
        self.held_up = self.held_up.saturating_add(self.behind(id));
    }

    /// Whoever's time has come is ready again.
    pub(super) fn wake(&mut self, now: Instant) {
        while let Some(&(due, id)) = self.waiting.first()
            && due <= now
        {
            self.waiting.pop_first();
            self.held_up = self.held_up.saturating_sub(self.behind(id));
            self.admit(id);
        }
    }

    /// Takes a job out; the next in its lane may run.
    pub(super) fn remove(&mut self, id: JobId) -> Option<Job> {
        let behind = self.behind(id);
        let job = self.by_id.remove(&id)?;
        if self.by_key.get(&job.key) == Some(&id) {
            self.by_key.remove(&job.key);
        }
        match job.stage {
            Stage::Running => self.running = self.running.saturating_sub(1),
            Stage::Waiting(until) => {
                self.waiting.remove(&(until, id));
                self.held_up = self.held_up.saturating_sub(behind);
            }
            Stage::Looked | Stage::InLine | Stage::Ready => {}
        }
        if let Some(lane) = &job.lane {
            self.leave(lane, id);
        }
        Some(job)
    }

    fn leave(&mut self, lane: &Lane, id: JobId) {
        if self.is_held_up(lane) {
            self.held_up = self.held_up.saturating_sub(1);
        }
        let Some(queue) = self.lanes.get_mut(lane) else { return };
        let was_first = queue.front() == Some(&id);
        queue.retain(|other| *other != id);
        let next = queue.front().copied();
        if queue.is_empty() {
            self.lanes.remove(lane);
        }
        if was_first
            && let Some(next) = next
            && self.by_id.get(&next).is_some_and(|job| job.stage == Stage::InLine)
        {
            self.admit(next);
        }
    }

    /// All that do not run.
    pub(super) fn idle(&self) -> Vec<JobId> {
        self.by_id.iter().filter(|(_, job)| job.stage != Stage::Running).map(|(id, _)| *id).collect()
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.waiting.first().map(|(due, _)| *due)
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// How many run, or could soon: neither waiting, nor behind one that waits.
    pub(super) fn active(&self) -> usize {
        self.by_id.len().saturating_sub(self.waiting.len()).saturating_sub(self.held_up)
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Whether the first of a lane waits.
    fn is_held_up(&self, lane: &Lane) -> bool {
        let first = self.lanes.get(lane).and_then(VecDeque::front);
        first
            .and_then(|first| self.by_id.get(first))
            .is_some_and(|job| matches!(job.stage, Stage::Waiting(_)))
    }

    /// How many stand in line behind a job that is the first of its lane.
    fn behind(&self, id: JobId) -> usize {
        let lane = self.by_id.get(&id).and_then(|job| job.lane.as_ref());
        let queue = lane.and_then(|lane| self.lanes.get(lane)).filter(|queue| queue.front() == Some(&id));
        queue.map_or(0, |queue| queue.len().saturating_sub(1))
    }
}
