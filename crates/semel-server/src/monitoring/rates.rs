//! Decisions a second, over the last 15 minutes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use semel::clock::{Clock, SystemClock};
use semel::{Semel, Stats};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// How often listeners are told.
const TICK: Duration = Duration::from_secs(1);
/// How many ticks a sample sums up.
const TICKS_OF_A_SAMPLE: u32 = 5;
/// How many samples are kept: those of 15 minutes.
const SAMPLES_MAX: usize = 180;

/// Samples of the engine's counters.
#[derive(Debug, Default)]
pub struct Rates {
    shared: Arc<Shared>,
    task: Option<JoinHandle<()>>,
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
        let task = tokio::spawn(sample_on(semel.clone(), Arc::clone(&shared)));
        Self { shared, task: Some(task) }
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

impl Drop for Rates {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn sample_on(semel: Semel, shared: Arc<Shared>) {
    let clock = SystemClock::new();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut second_began = semel.stats();
    let mut sample_began = second_began;
    let mut ticked = 0_u32;
    loop {
        ticks.tick().await;
        let (at, now) = (clock.now().as_micros() / 1_000_000, semel.stats());
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
