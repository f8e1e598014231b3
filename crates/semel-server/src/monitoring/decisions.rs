//! Decisions: as they are made, and a second, over the last 15 minutes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use semel::clock::{Clock, SystemClock};
use semel::record::Record;
use semel::{Key, Semel, Stats};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::serve::{is_noting, note_decision};

/// How many decisions a slow listener may be behind before it misses some, and is told so.
const BEHIND_MAX: usize = 1_024;
/// How often listeners are told.
const TICK: Duration = Duration::from_secs(1);
/// How many ticks a sample sums up.
const TICKS_OF_A_SAMPLE: u32 = 5;
/// How many samples are kept: those of 15 minutes.
const SAMPLES_MAX: usize = 180;

/// Where decisions are told to whoever listens.
#[derive(Clone, Debug)]
pub struct Live(broadcast::Sender<Arc<Seen>>);

/// A decision, or the end of a run.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What was decided.
    pub decision: DecisionKind,
    /// About what.
    pub key: Key,
    /// Attempt number, where there is one.
    pub attempt: Option<u32>,
}

/// What was decided, or how a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionKind {
    /// May do the work.
    Run,
    /// Got the stored outcome.
    Replay,
    /// Another one runs.
    Busy,
    /// Same key, other request.
    Mismatch,
    /// Somebody must decide.
    Held,
    /// Ended with an outcome.
    Done,
    /// Given up, so that another may run.
    Released,
    /// Another run took over.
    Lost,
    /// An operator decided.
    Resolved,
}

impl DecisionKind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Replay => "replay",
            Self::Busy => "busy",
            Self::Mismatch => "mismatch",
            Self::Held => "held",
            Self::Done => "done",
            Self::Released => "released",
            Self::Lost => "lost",
            Self::Resolved => "resolved",
        }
    }
}

impl Seen {
    /// What was decided about this record.
    pub(crate) fn of(decision: DecisionKind, record: &Record) -> Self {
        Self { decision, key: record.key.clone(), attempt: Some(record.attempt) }
    }
}

impl Default for Live {
    fn default() -> Self {
        Self(broadcast::channel(BEHIND_MAX).0)
    }
}

impl Live {
    /// Tells listeners, and notes it for the access log; costs next to nothing without both.
    pub fn tell(&self, seen: impl FnOnce() -> Seen) {
        let has_listeners = self.0.receiver_count() > 0;
        if !has_listeners && !is_noting() {
            return;
        }
        let seen = seen();
        note_decision(seen.decision, seen.key.id());
        if has_listeners {
            drop(self.0.send(Arc::new(seen)));
        }
    }

    /// Listens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Seen>> {
        self.0.subscribe()
    }
}

/// Samples of the engine's counters.
#[derive(Debug, Default)]
pub struct Rates {
    shared: Arc<Shared>,
    /// Ends when it is dropped.
    _task: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Shared {
    samples: Mutex<VecDeque<Sample>>,
    last_second: watch::Sender<Sample>,
}

/// What was decided between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// When it ended, in seconds since 1970, on this machine's clock.
    pub at: u64,
    /// How many of each in that time.
    pub decisions: Stats,
}

impl Rates {
    /// How much time a sample of [`samples`](Self::samples) sums up.
    pub const SPAN: Duration = Duration::from_secs(5);

    /// Samples this engine from now on, until it is dropped.
    pub fn start(semel: &Semel) -> Self {
        let shared = Arc::<Shared>::default();
        let task = sample_on(semel.clone(), Arc::clone(&shared));
        Self { shared, _task: JoinSet::from_iter([task]) }
    }

    /// The samples of the last 15 minutes, oldest first. There are fewer after a start.
    pub fn samples(&self) -> Vec<Sample> {
        self.shared.samples.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// What was decided in the last second, now and each second from now on.
    pub fn last_second(&self) -> watch::Receiver<Sample> {
        self.shared.last_second.subscribe()
    }
}

async fn sample_on(semel: Semel, shared: Arc<Shared>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut second_began = semel.stats();
    let mut sample_began = second_began;
    let mut ticked = 0_u32;
    loop {
        ticks.tick().await;
        let (at, now) = (SystemClock::new().now().as_micros() / 1_000_000, semel.stats());
        shared.last_second.send_replace(Sample { at, decisions: between(&second_began, &now) });
        second_began = now;
        ticked = ticked.saturating_add(1);
        if ticked >= TICKS_OF_A_SAMPLE {
            shared.keep(Sample { at, decisions: between(&sample_began, &now) });
            (ticked, sample_began) = (0, now);
        }
    }
}

impl Shared {
    fn keep(&self, sample: Sample) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() >= SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

/// What was counted between two looks at the counters.
fn between(before: &Stats, after: &Stats) -> Stats {
    let more = |count: fn(&Stats) -> u64| count(after).saturating_sub(count(before));
    Stats {
        run: more(|stats| stats.run),
        replay: more(|stats| stats.replay),
        busy: more(|stats| stats.busy),
        mismatch: more(|stats| stats.mismatch),
        held: more(|stats| stats.held),
        lost: more(|stats| stats.lost),
        unprotected: more(|stats| stats.unprotected),
        swept: more(|stats| stats.swept),
    }
}
