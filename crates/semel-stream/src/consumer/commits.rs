//! Offsets, committed up to where everything is done.

use std::sync::Arc;

use semel::machine::offset::Position;
use semel::{Error, ErrorKind, Result};

use super::checkpoint::Checkpoint;
use super::jobs::Placed;
use super::running::{Errand, Running};
use super::watch::Step;
use crate::offset::Commit;

impl Running<'_> {
    /// Everything that is done without a gap is to be committed now.
    pub(super) fn checkpoint_all(&mut self) {
        self.streams.iter_mut().for_each(|(_, stream)| stream.is_due = true);
        self.shared.is_due |= !self.streams.are_alone();
    }

    /// The last checkpoint, unless only explicit ones are wanted.
    pub(super) fn checkpoint_last(&mut self) {
        if self.choices.checkpoint != Checkpoint::Explicit {
            self.checkpoint_all();
        }
    }

    pub(super) fn commit_what_is_due(&mut self) {
        let checkpoint = self.choices.checkpoint;
        for (name, stream) in self.streams.iter_mut() {
            stream.is_due |= checkpoint.is_due_after(stream.frontier.uncommitted());
            if !stream.is_due || stream.is_committing {
                continue;
            }
            let (Some(reader), Some((position, placed))) = (&stream.reader, stream.frontier.to_commit())
            else {
                stream.is_due = false;
                continue;
            };
            (stream.is_due, stream.is_committing) = (false, true);
            let (tools, reader, position) = (Arc::clone(&self.tools), reader.clone(), *position);
            let (stream, generation) = (Arc::clone(name), stream.generation);
            let event = placed.id.clone().or_else(|| placed.key.as_deref().map(Into::into));
            self.errands.push(Box::pin(async move {
                let ask = || reader.commit_knowing(position, event.as_deref(), tools.tally.known_lag());
                let commit = tools.patiently("the store", ask).await;
                Errand::Committed { stream, generation, position, commit }
            }));
        }
    }

    pub(super) fn committed(
        &mut self,
        name: &Arc<str>,
        generation: u64,
        position: Position,
        commit: Result<Commit>,
    ) {
        if let Some(stream) = self.streams.current(name, generation) {
            stream.is_committing = false;
        }
        match commit {
            Ok(Commit::Committed(_)) => self.moved(name, generation, position),
            // Whoever moved it further did so under this epoch, with what was done then.
            Ok(Commit::Behind(_)) => self.covered(name, generation, position),
            Ok(Commit::Fenced(_)) => self.fenced(name, generation),
            Err(error) => self.fail(error),
        }
    }

    /// The offset is at this position.
    pub(super) fn moved(&mut self, name: &Arc<str>, generation: u64, position: Position) {
        self.offset_is_at(name, position);
        self.covered(name, generation, position);
    }

    /// What an offset covers is acknowledged, if it is still this consumer's business.
    fn covered(&mut self, name: &Arc<str>, generation: u64, position: Position) {
        if let Some(stream) = self.streams.current(name, generation) {
            self.to_acknowledge.extend(stream.frontier.committed(position));
        }
    }

    fn offset_is_at(&self, name: &Arc<str>, position: Position) {
        self.tools.tally.offset(name, position);
        self.tools.saw(&Step::Offset { stream: name, position });
    }

    /// Somebody else reads the stream now: whatever becomes of it is theirs.
    pub(super) fn fenced(&mut self, name: &Arc<str>, generation: u64) {
        if self.streams.current(name, generation).is_none() {
            return;
        }
        tracing::warn!(stream = &**name, "semel-stream: somebody else reads the stream now");
        self.streams.drop(name);
        if self.streams.is_empty() {
            let message = format!(
                "somebody else reads {name} now, or it was rewound, and nothing else is left to read; start again to take it over"
            );
            self.fail(Error::new(ErrorKind::Lost, message));
        }
    }

    pub(super) fn acknowledged(&mut self, events: &[Placed]) {
        for placed in events {
            self.tools.saw(&Step::Acknowledged(placed.at()));
        }
        if self.streams.are_alone() {
            return;
        }
        let more = u64::try_from(events.len()).unwrap_or(u64::MAX);
        self.shared.acknowledged = self.shared.acknowledged.saturating_add(more);
        self.shared.is_due |= self.choices.checkpoint.is_due_after(self.shared.acknowledged);
    }

    /// Commits how far the source says that everybody is.
    pub(super) fn commit_floor(&mut self, floor: Vec<(Arc<str>, Position)>) {
        for (stream, position) in floor {
            if self.shared.committed.get(&stream).is_some_and(|committed| *committed >= position) {
                continue;
            }
            self.shared.committing = self.shared.committing.saturating_add(1);
            let tools = Arc::clone(&self.tools);
            self.errands.push(Box::pin(async move {
                let lag = tools.tally.known_lag();
                let ask = || tools.pipeline.commit_shared_knowing(&stream, position, None, lag);
                let commit = tools.patiently("the store", ask).await;
                Errand::CommittedShared { stream, position, commit }
            }));
        }
    }

    pub(super) fn committed_shared(&mut self, stream: &Arc<str>, position: Position, commit: Result<Commit>) {
        self.shared.committing = self.shared.committing.saturating_sub(1);
        match commit {
            Ok(Commit::Committed(_)) => self.offset_is_at(stream, position),
            Ok(Commit::Behind(_)) => {}
            // The broker knows what was acknowledged; the offset only shows it to people.
            Ok(Commit::Fenced(_)) => {
                tracing::warn!(
                    stream = &**stream,
                    "semel-stream: the offset was rewound, or is read alone; it is left"
                );
            }
            Err(error) => return self.fail(error),
        }
        self.shared.committed.insert(Arc::clone(stream), position);
    }
}
