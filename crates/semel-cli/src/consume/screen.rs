//! Standard error, with a live line at its bottom if it is a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Where people see what goes on. Clones write to the same place.
#[derive(Clone, Debug)]
pub(super) struct Screen {
    live: Option<ProgressBar>,
    sink: Sink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sink {
    Stderr,
    #[cfg(test)]
    Nowhere,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self { live: io::stderr().is_terminal().then(live), sink: Sink::Stderr }
    }

    /// One that shows nothing.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self { live: None, sink: Sink::Nowhere }
    }

    /// How often there is something new to show.
    pub(super) fn pace(&self) -> Duration {
        if self.live.is_some() { Duration::from_millis(200) } else { Duration::from_secs(10) }
    }

    /// Shows how things stand: over what stood there before, or as one more line.
    pub(super) fn show(&self, standing: &str) {
        match &self.live {
            Some(live) => {
                live.set_message(standing.to_owned());
                live.tick();
            }
            None => self.line(standing),
        }
    }

    /// One line, for good.
    pub(super) fn line(&self, text: &str) {
        self.pass_on(format!("semel consume: {text}\n").as_bytes());
    }

    /// What a command complained of, as it is.
    pub(super) fn pass_on(&self, bytes: &[u8]) {
        if self.sink != Sink::Stderr {
            return;
        }
        let write = || {
            // If nobody can be told, nobody can be told that either.
            let _unseen = io::stderr().lock().write_all(bytes);
        };
        match &self.live {
            Some(live) => live.suspend(write),
            None => write(),
        }
    }

    /// No more live line.
    pub(super) fn clear(&self) {
        if let Some(live) = &self.live {
            live.finish_and_clear();
        }
    }
}

fn live() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}
