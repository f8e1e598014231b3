//! Consumers that do it in the wrong order. Whoever watches must find them out.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use semel::{Decision, Outcome, Result};
use semel_stream::source::{Fetched, Pending, Reads, Source, Tag};
use semel_stream::{Position, Task, Work, Worked};

use crate::effects::{Effects, number};
use crate::steps::{Point, Steps};

/// Commits the offset, and only then claims, runs and completes.
pub(crate) struct CommitFirst {
    effects: Effects,
    steps: Arc<Steps>,
}

impl CommitFirst {
    pub(crate) fn new(effects: Effects, steps: Arc<Steps>) -> Self {
        Self { effects, steps }
    }

    async fn worked(&self, task: Task<'_>) -> Result<Worked> {
        let mut is_committed = false;
        if let (Some(reader), Some(position)) = (task.reader, task.event.position) {
            reader.commit(position, Some(task.key)).await?;
            is_committed = true;
        }
        let permit = match task.pipeline.semel().claim(task.claim()?).await? {
            Decision::Run(permit) | Decision::Unprotected(permit) => permit,
            Decision::Busy(busy) => return Ok(Worked::Busy(busy.retry_after())),
            Decision::Held(held) => return Ok(Worked::Held(held.reason().to_owned())),
            Decision::Replay(_) | Decision::Mismatch(_) => return Ok(Worked::Duplicate),
        };
        let attempt = permit.attempt();
        self.steps.at(Point::Claimed);
        if self.effects.append(&number(task.event), attempt).is_err() {
            return Ok(Worked::Busy(Duration::ZERO));
        }
        task.saw_effect();
        permit.complete(Outcome::success("done")).await?;
        Ok(if is_committed { Worked::OffsetToo { attempt } } else { Worked::Ran { attempt } })
    }
}

impl Work for CommitFirst {
    fn work<'a>(&'a self, task: Task<'a>) -> Pin<Box<dyn Future<Output = Result<Worked>> + Send + 'a>> {
        Box::pin(self.worked(task))
    }
}

/// Acknowledges whatever is delivered, when it is.
pub(crate) struct AckFirst<S>(pub(crate) S);

impl<S: Source> Source for AckFirst<S> {
    fn reads(&self) -> Reads {
        self.0.reads()
    }

    fn fetch(&mut self, most: usize) -> Pending<'_, Fetched> {
        Box::pin(async move {
            let fetched = self.0.fetch(most).await?;
            if let Fetched::Deliveries(deliveries) = &fetched {
                let tags: Vec<_> = deliveries.iter().map(|delivery| delivery.tag).collect();
                self.0.acknowledge(&tags).await?;
            }
            Ok(fetched)
        })
    }

    fn acknowledge<'a>(&'a mut self, _: &'a [Tag]) -> Pending<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn give_back<'a>(&'a mut self, _: &'a [Tag], _: Duration) -> Pending<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn start<'a>(&'a mut self, stream: &'a str, after: Option<Position>) -> Pending<'a, ()> {
        self.0.start(stream, after)
    }

    fn floor(&mut self) -> Pending<'_, Vec<(Arc<str>, Position)>> {
        self.0.floor()
    }

    fn lag(&mut self) -> Pending<'_, Option<u64>> {
        self.0.lag()
    }

    fn close(&mut self) -> Pending<'_, ()> {
        self.0.close()
    }
}
