//! All calls that wait become one transaction, for every database alike.
//!
//! One thread writes. It takes whatever waits, hands it to the database in one transaction, and answers all of it after
//! the commit. There is no timer: one lone caller waits for nothing but the disk. With one call at a time, it is a
//! transaction per call without any fight for the lock. Duplicates go the same way: to look first would spare them the wait
//! for the others' commit, and cost every new claim a second look-up.

use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context, Result, anyhow, bail};
use semel::clock::{Clock, SystemClock};
use tokio::sync::oneshot;

use super::{Call, Database, Kept, Reply, Row};
use crate::contestants::{Claimed, Contestant};
use crate::inputs::{self, Response};

const LOADED_TOGETHER: u64 = 16_384;

pub(crate) struct GroupCommit {
    /// `None` only while it is dropped.
    queue: Option<Sender<Waiting>>,
    writer: Option<std::thread::JoinHandle<()>>,
    clock: SystemClock,
    outcome: Vec<u8>,
}

struct Waiting {
    call: Call,
    answer: oneshot::Sender<Result<Reply>>,
}

impl GroupCommit {
    /// Starts the writer, which takes at most `calls_max` calls into a transaction.
    pub(crate) fn new(database: impl Database, calls_max: usize) -> Result<Self> {
        let (queue, waiting) = channel();
        let writer = std::thread::Builder::new()
            .name("group commit".to_owned())
            .spawn(move || write(database, &waiting, calls_max))
            .context("the writer cannot start")?;
        let outcome = Response::new().encoded();
        Ok(Self { queue: Some(queue), writer: Some(writer), clock: SystemClock::new(), outcome })
    }

    async fn ask(&self, call: Call) -> Result<Reply> {
        let (answer, reply) = oneshot::channel();
        let queue = self.queue.as_ref().context("the writer has ended")?;
        queue.send(Waiting { call, answer }).map_err(|_| anyhow!("the writer has ended"))?;
        reply.await.context("the writer has ended")?
    }
}

impl Drop for GroupCommit {
    /// Waits until the database is closed: its folder is removed, or opened again, after this.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn write(mut database: impl Database, waiting: &Receiver<Waiting>, calls_max: usize) {
    while let Ok(first) = waiting.recv() {
        let together = std::iter::once(first).chain(waiting.try_iter()).take(calls_max);
        let (calls, answers): (Vec<_>, Vec<_>) = together.map(|one| (one.call, one.answer)).unzip();
        // A caller that no longer waits needs no answer.
        match database.commit(&calls) {
            Ok(replies) => {
                for (answer, reply) in answers.into_iter().zip(replies) {
                    let _ = answer.send(Ok(reply));
                }
            }
            Err(error) => {
                for answer in answers {
                    let _ = answer.send(Err(anyhow!("the transaction failed: {error:#}")));
                }
            }
        }
    }
}

impl Contestant for GroupCommit {
    type Run = u64;

    async fn claim(&self, number: u64) -> Result<Claimed<u64>> {
        let now_micros = self.clock.now().as_micros();
        let row = Row::running(number, now_micros)?;
        let found = match self.ask(Call::Claim { row, now_micros }).await? {
            Reply::Written => return Ok(Claimed::Run(number)),
            Reply::Found(found) => found,
            Reply::Lost => bail!("a claim has nothing to lose"),
        };
        let kept = Kept::new(&found);
        if !kept.is_done() || kept.fingerprint() != Some(&inputs::digest(number)[..]) {
            bail!("key {number} is not what it was");
        }
        Ok(Claimed::Replay(kept.last().context("a row has an outcome")?.len()))
    }

    async fn complete(&self, number: u64) -> Result<()> {
        let row = Row::done(number, self.clock.now().as_micros(), &self.outcome)?;
        match self.ask(Call::Complete { expected: 1, row }).await? {
            Reply::Written => Ok(()),
            Reply::Found(_) | Reply::Lost => bail!("another caller wrote key {number}"),
        }
    }
}

/// Loads a database with done keys; each was done a microsecond after the one before it. Returns when the last expires.
pub(crate) fn fill(database: &mut impl Database, keys: u64) -> Result<u64> {
    let outcome = Response::new().encoded();
    let now_micros = SystemClock::new().now().as_micros();
    let mut last_until_micros = 0;
    for first in (0..keys).step_by(usize::try_from(LOADED_TOGETHER)?) {
        let mut calls = Vec::new();
        for number in first..keys.min(first + LOADED_TOGETHER) {
            let row = Row::done(number, now_micros + number, &outcome)?;
            last_until_micros = row.until_micros;
            calls.push(Call::Claim { row, now_micros });
        }
        let replies = database.commit(&calls)?;
        if replies.iter().any(|reply| *reply != Reply::Written) {
            bail!("a key that is loaded was there before");
        }
    }
    Ok(last_until_micros)
}
