//! Where the source is talked to: one ask at a time, while everything else goes on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use semel::machine::offset::Position;
use semel::{Error, Result};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::jobs::Placed;
use super::tools::Tools;
use crate::source::{Fetched, Source, Tag};

/// How long a source has to say goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(5);

/// What the source is asked.
pub(super) enum Ask {
    Fetch(usize),
    Acknowledge(Vec<Placed>),
    GiveBack(Vec<Placed>, Duration),
    Start(Start),
    Floor,
    Lag,
}

/// A stream that is to be read from behind a position.
#[derive(Clone)]
pub(super) struct Start {
    pub(super) stream: Arc<str>,
    pub(super) generation: u64,
    pub(super) after: Option<Position>,
}

/// What came of it.
pub(super) enum Answer {
    Fetched(Fetched),
    /// There is something else to ask first.
    Interrupted,
    Acknowledged(Vec<Placed>),
    GivenBack(Vec<Placed>),
    Started,
    Floor(Vec<(Arc<str>, Position)>),
    Lag(Option<u64>),
    /// The source could not do what it was asked, which is to be asked again.
    Unanswered(Ask, Error),
}

type Busy<'s> = Pin<Box<dyn Future<Output = (Box<dyn Source + 's>, Answer)> + Send + 's>>;

/// The source, or whatever it is busy with.
pub(super) struct Desk<'s> {
    source: Option<Box<dyn Source + 's>>,
    busy: Option<Busy<'s>>,
    /// Set while the source is asked for deliveries, which may take for ever.
    is_fetching: bool,
    interrupt: Arc<Notify>,
    failures: u32,
    pause_until: Option<Instant>,
}

impl<'s> Desk<'s> {
    pub(super) fn new(source: Box<dyn Source + 's>) -> Self {
        Self {
            source: Some(source),
            busy: None,
            is_fetching: false,
            interrupt: Arc::default(),
            failures: 0,
            pause_until: None,
        }
    }

    /// Whether it can be asked now.
    pub(super) fn is_free(&self) -> bool {
        self.source.is_some() && self.pause_until.is_none_or(|until| Instant::now() >= until)
    }

    /// Whether it is doing something else than waiting for deliveries.
    pub(super) fn is_at_work(&self) -> bool {
        self.busy.is_some() && !self.is_fetching
    }

    /// Ends a fetch that is under way: there is something else to ask.
    pub(super) fn interrupt(&self) {
        if self.is_fetching {
            self.interrupt.notify_one();
        }
    }

    pub(super) fn ask(&mut self, ask: Ask) {
        let Some(source) = self.source.take() else { return };
        self.is_fetching = matches!(ask, Ask::Fetch(_));
        if self.is_fetching {
            // A wake that came too late for the fetch before is not meant for this one.
            self.interrupt = Arc::default();
        }
        self.busy = Some(Box::pin(asked(source, ask, Arc::clone(&self.interrupt))));
    }

    /// The answer to what it was asked; never, if it was asked nothing.
    pub(super) async fn answer(&mut self) -> Answer {
        let Some(busy) = &mut self.busy else { return std::future::pending().await };
        let (source, answer) = busy.await;
        (self.source, self.busy, self.is_fetching) = (Some(source), None, false);
        answer
    }

    /// It did not answer, and is left alone for a while.
    pub(super) fn rest(&mut self, tools: &Tools) {
        self.failures = self.failures.saturating_add(1);
        self.pause_until = Instant::now().checked_add(tools.backoff.after(self.failures));
    }

    pub(super) fn recovered(&mut self) {
        (self.failures, self.pause_until) = (0, None);
    }

    /// There is no time for rests.
    pub(super) fn hurry(&mut self) {
        let soon = Instant::now().checked_add(Duration::from_millis(200));
        self.pause_until = self.pause_until.min(soon);
    }

    pub(super) fn free_at(&self) -> Option<Instant> {
        self.pause_until.filter(|_| self.source.is_some())
    }

    /// Says goodbye. A source that only waits for deliveries is called back for it; one that is busy still is left as it
    /// is.
    pub(super) async fn close(&mut self, tools: &Tools) {
        if self.is_fetching {
            self.interrupt();
            let _ = timeout(GOODBYE_MAX, self.answer()).await;
        }
        let Some(source) = &mut self.source else { return };
        if let Ok(Ok(lag)) = timeout(GOODBYE_MAX, source.lag()).await {
            tools.tally.lag(lag);
        }
        match timeout(GOODBYE_MAX, source.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "semel-stream: the source did not close"),
            Err(_) => tracing::warn!("semel-stream: the source did not close in time"),
        }
    }
}

async fn asked<'s>(
    mut source: Box<dyn Source + 's>,
    ask: Ask,
    interrupt: Arc<Notify>,
) -> (Box<dyn Source + 's>, Answer) {
    let answer = match &ask {
        Ask::Fetch(most) => tokio::select! {
            biased;
            () = interrupt.notified() => return (source, Answer::Interrupted),
            fetched = source.fetch(*most) => fetched.map(Answer::Fetched),
        },
        Ask::Acknowledge(events) => done(source.acknowledge(&tags(events)).await, Answer::Interrupted),
        Ask::GiveBack(events, after) => {
            done(source.give_back(&tags(events), *after).await, Answer::Interrupted)
        }
        Ask::Start(start) => done(source.start(&start.stream, start.after).await, Answer::Started),
        Ask::Floor => source.floor().await.map(Answer::Floor),
        Ask::Lag => source.lag().await.map(Answer::Lag),
    };
    let answer = match (answer, ask) {
        (Err(error), ask) => Answer::Unanswered(ask, error),
        (Ok(_), Ask::Acknowledge(events)) => Answer::Acknowledged(events),
        (Ok(_), Ask::GiveBack(events, _)) => Answer::GivenBack(events),
        (Ok(answer), Ask::Fetch(_) | Ask::Start(_) | Ask::Floor | Ask::Lag) => answer,
    };
    (source, answer)
}

fn done(result: Result<()>, answer: Answer) -> Result<Answer> {
    result.map(|()| answer)
}

fn tags(events: &[Placed]) -> Vec<Tag> {
    events.iter().map(|placed| placed.tag).collect()
}
