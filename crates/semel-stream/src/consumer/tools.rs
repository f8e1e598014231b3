//! What every part of a running consumer needs.

use std::future::Future;
use std::sync::Arc;

use semel::{Error, ErrorKind, Result};

use super::backoff::Backoff;
use super::control::Control;
use super::report::Tally;
use super::watch::{Step, Watch};
use crate::dead_letter::{DeadLetter, DeadLetters};
use crate::pipeline::Pipeline;

/// What the loop and the attempts share.
pub(super) struct Tools {
    pub(super) pipeline: Pipeline,
    pub(super) dead_letters: Box<dyn DeadLetters>,
    /// Whether dead letters go anywhere besides their receipts.
    pub(super) has_place_for_letters: bool,
    pub(super) dead_letter_bytes_max: usize,
    pub(super) watch: Option<Arc<dyn Watch>>,
    pub(super) control: Arc<Control>,
    pub(super) tally: Arc<Tally>,
    pub(super) backoff: Backoff,
    pub(super) attempts_max: u32,
}

impl Tools {
    pub(super) fn saw(&self, step: &Step<'_>) {
        if let Some(watch) = &self.watch {
            watch.saw(step);
        }
    }

    /// Somebody does not answer, and everything waits for it.
    pub(super) fn waits_for(&self, what: &'static str, error: &Error) {
        tracing::warn!(pipeline = self.pipeline.name(), what, %error, "semel-stream: waiting");
        self.saw(&Step::Waiting(error));
    }

    pub(super) async fn put_aside(&self, letter: DeadLetter) -> Result<()> {
        self.dead_letters.put_aside(letter).await
    }

    /// Asks until there is an answer.
    pub(super) async fn patiently<T, Fut>(&self, what: &'static str, ask: impl Fn() -> Fut) -> Result<T>
    where
        Fut: Future<Output = Result<T>>,
    {
        let mut tries = 0_u32;
        loop {
            match ask().await {
                Err(error) if is_outage(&error) => self.waits_for(what, &error),
                answer => return answer,
            }
            tries = tries.saturating_add(1);
            self.control.pause(self.backoff.after(tries)).await;
        }
    }
}

/// Whether the same may well work later, without anybody's help.
pub(super) fn is_outage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown | ErrorKind::Full)
}
