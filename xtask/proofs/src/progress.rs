//! How far a long run is: a bar on a terminal, a line now and then elsewhere; and how long it takes.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use xtask::run;

/// How often a line is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(20);

/// Counts up to a known end.
pub(crate) struct Progress {
    what: &'static str,
    bar: Option<ProgressBar>,
    most: u64,
    done: Mutex<(u64, Stopwatch)>,
}

impl Progress {
    pub(crate) fn new(what: &'static str, most: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(most).with_message(what));
        if let (Some(bar), Ok(style)) =
            (&bar, ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {per_sec} eta {eta}"))
        {
            bar.set_style(style);
        }
        Self { what, bar, most, done: Mutex::new((0, Stopwatch::start())) }
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0 += 1;
        if let Some(bar) = &self.bar {
            bar.set_position(done.0);
        } else if done.1.elapsed() >= LINE_EVERY {
            run::started(&format!("{}: {} of {}", self.what, done.0, self.most));
            done.1 = Stopwatch::start();
        }
    }
}

impl Progress {
    /// Says something, without a bar in between.
    pub(crate) fn aside(&self, say: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Runs something with a bar, and says what came of it.
pub(crate) fn with_progress<R: ToString>(
    what: &'static str,
    steps: usize,
    work: impl FnOnce(&dyn Fn()) -> Result<R>,
) -> Result<()> {
    run::started(what);
    let bar = Progress::new(what, steps as u64);
    let done = work(&|| bar.step());
    drop(bar);
    run::passed(&done?.to_string());
    Ok(())
}

/// Measures how long something takes. Starts when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a stopwatch measures real time, and decides nothing")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// How many of so many things were done in a second.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
    pub(crate) fn rate(self, things: u64) -> f64 {
        things as f64 / self.elapsed().as_secs_f64().max(0.001)
    }
}
