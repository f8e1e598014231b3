//! A span without progress, after which a body is given up.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// A timer that runs only while nothing happens. It costs nothing until the first wait.
#[derive(Debug)]
pub struct Idle {
    span: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    running: bool,
}

impl Idle {
    /// Waits for this long at most.
    pub fn new(span: Duration) -> Self {
        Self { span, timer: None, running: false }
    }

    /// How long may pass.
    pub fn span(&self) -> Duration {
        self.span
    }

    /// Something happened.
    pub fn progressed(&mut self) {
        self.running = false;
    }

    /// Nothing happens yet: ready once that has been so for the whole span.
    pub fn poll_waited(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let span = self.span;
        let timer = self.timer.get_or_insert_with(|| {
            self.running = true;
            Box::pin(tokio::time::sleep(span))
        });
        if !self.running {
            self.running = true;
            let now = Instant::now();
            timer.as_mut().reset(now.checked_add(span).unwrap_or(now));
        }
        timer.as_mut().poll(cx)
    }
}
