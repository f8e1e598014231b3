//! What people are told while a consumer runs: failures, dead letters, and what everything waits for; on standard error,
//! with a live line at its bottom if that is a terminal.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};
use semel_stream::{At, Pipeline, Step, Watch};

use crate::terminal::bar::styled;
use crate::terminal::{Stopwatch, counted, text};

/// How many lines a second are read by anybody. What is left out is still counted.
const LINES_MAX: u32 = 20;
/// How long the same outage goes unmentioned.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many held events are remembered as mentioned.
const MENTIONED_MAX: usize = 10_000;

/// Tells people what they should know of, and how often they want to know it.
pub(super) struct Reporter {
    pipeline: Pipeline,
    screen: Screen,
    said: Mutex<Said>,
}

#[derive(Default)]
struct Said {
    second: Option<Stopwatch>,
    lines: u32,
    outage: Option<(String, Stopwatch)>,
    held: HashSet<String>,
}

impl Reporter {
    pub(super) fn new(pipeline: &Pipeline, screen: &Screen) -> Self {
        Self { pipeline: pipeline.clone(), screen: screen.clone(), said: Mutex::default() }
    }

    /// An event by its place and the beginning of its record's id, by which `semel keys show` finds it. What a key says is
    /// nobody's business in a log.
    fn name(&self, at: &At<'_>) -> String {
        let id = at.key.and_then(|key| self.pipeline.receipt_key(key).ok());
        let id = id.map_or_else(|| "an event without a key".to_owned(), |key| key.id().short().to_string());
        match at.position {
            Some(position) => format!("{id} ({} at {position})", text::shown(at.stream)),
            None => format!("{id} ({})", text::shown(at.stream)),
        }
    }

    fn line(&self, line: &str) {
        if self.said(Said::has_room) {
            self.screen.line(line);
        }
    }

    fn said<T>(&self, change: impl FnOnce(&mut Said) -> T) -> T {
        change(&mut self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Said {
    fn has_room(&mut self) -> bool {
        if self.second.is_none_or(|second| second.elapsed() >= Duration::from_secs(1)) {
            (self.second, self.lines) = (Some(Stopwatch::start()), 0);
        }
        self.lines = self.lines.saturating_add(1);
        self.lines <= LINES_MAX
    }

    fn is_news(&mut self, outage: &str) -> bool {
        let is_old = self.outage.as_ref().is_some_and(|(said, at)| said == outage && at.elapsed() < PATIENCE);
        if !is_old {
            self.outage = Some((outage.to_owned(), Stopwatch::start()));
        }
        !is_old
    }

    fn is_new(&mut self, held: String) -> bool {
        self.held.len() < MENTIONED_MAX && self.held.insert(held)
    }
}

impl Watch for Reporter {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other steps are counted, and shown with how things stand"
    )]
    fn saw(&self, step: &Step<'_>) {
        match step {
            Step::Failed { at, attempt, error } => {
                self.line(&format!("attempt {attempt} of {} failed: {}", self.name(at), text::shown(error)));
            }
            Step::DeadLetter { at, attempts, error, is_payload_kept } => {
                let not_kept = if *is_payload_kept {
                    ""
                } else {
                    "; its payload is not kept, so it cannot be requeued (--dead-letter-bytes-max)"
                };
                self.line(&format!(
                    "{} is put aside after {}: {}{not_kept}",
                    self.name(at),
                    counted(u64::from(*attempts), "attempt"),
                    text::shown(error)
                ));
            }
            Step::Requeued(at) => {
                self.line(&format!("{} was requeued, and is processed again", self.name(at)));
            }
            Step::Held(at) => {
                let name = self.name(at);
                if self.said(|said| said.is_new(name.clone())) {
                    self.line(&format!(
                        "{name} is held: it may have been processed or not, and waits for somebody to decide \
                         (semel receipts {} --held)",
                        self.pipeline.name()
                    ));
                }
            }
            Step::Waiting(error) => {
                let error = error.to_string();
                if self.said(|said| said.is_news(&error)) {
                    self.screen.line(&format!("waiting, and trying again: {}", text::shown(&error)));
                }
            }
            _ => {}
        }
    }
}

/// Where people see what goes on. Clones write to the same place.
#[derive(Clone, Debug)]
pub(super) struct Screen {
    live: Option<ProgressBar>,
}

impl Screen {
    pub(super) fn new() -> Self {
        let live = || {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            styled(bar, "{spinner} {wide_msg}")
        };
        Self { live: io::stderr().is_terminal().then(live) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_outage_is_mentioned_once_and_another_at_once() {
        let mut said = Said::default();
        assert!(said.is_news("a is down") && !said.is_news("a is down") && said.is_news("b is down"));
    }

    #[test]
    fn a_flood_of_lines_is_cut_and_an_event_is_held_once() {
        let mut said = Said::default();
        let shown = (0..1_000).filter(|_| said.has_room()).count();
        assert!((20..=40).contains(&shown), "{shown}");
        assert!(said.is_new("e-1".to_owned()) && !said.is_new("e-1".to_owned()));
    }
}
