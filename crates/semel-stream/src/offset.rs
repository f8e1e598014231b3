//! How far a pipeline has read its streams.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::machine::offset::{self, Move, Moved, Offset, Position};
use semel::record::{Record, StateKind};
use semel::store::{Filter, Scan};
use semel::{Error, ErrorKind, Key, Result, Semel};

use crate::pipeline::{OFFSET, Pipeline};

/// How many records are looked through at a time.
const PAGE: usize = 1_000;

/// Somebody who reads a stream alone, until somebody else does.
#[derive(Clone, Debug)]
pub struct Reader {
    semel: Semel,
    key: Key,
    stream: Arc<str>,
    started_at: Offset,
}

/// What became of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    /// The offset as it now is.
    Committed(Offset),
    /// Refused: somebody else reads the stream now, or it was rewound. Stop reading it.
    Fenced(Offset),
    /// Refused: the offset is further on already.
    Behind(Offset),
}

/// How far one stream has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOffset {
    /// Which stream.
    pub stream: Box<str>,
    /// How far.
    pub offset: Offset,
    /// Since when, on the store's clock.
    pub at: Timestamp,
}

impl Pipeline {
    /// Begins to read a stream alone: a new epoch. Whoever read it before can commit no more.
    pub async fn take(&self, stream: &str) -> Result<Reader> {
        let key = self.offset_key(stream)?;
        let started_at = match self.semel().move_offset(&key, Move::Take).await? {
            Moved::Moved(offset) => offset,
            Moved::Fenced(_) | Moved::Behind(_) | Moved::NoOffset => return Err(no_offset(&key)),
        };
        Ok(Reader { semel: self.semel().clone(), key, stream: stream.into(), started_at })
    }

    /// Everything of a stream that many share is done up to here.
    pub async fn commit_shared(
        &self,
        stream: &str,
        position: Position,
        event: Option<&str>,
    ) -> Result<Commit> {
        self.commit_shared_knowing(stream, position, event, None).await
    }

    /// The same, with how many events are still before it: for people to see.
    pub async fn commit_shared_knowing(
        &self,
        stream: &str,
        position: Position,
        event: Option<&str>,
        lag: Option<u64>,
    ) -> Result<Commit> {
        let key = self.offset_key(stream)?;
        let wanted = Move::Commit { epoch: None, position, last_event: event.map(Into::into), lag };
        committed(self.semel().move_offset(&key, wanted).await?, &key)
    }

    /// How far a stream has been read; `None` if nobody ever began.
    pub async fn offset(&self, stream: &str) -> Result<Option<Offset>> {
        let key = self.offset_key(stream)?;
        let Some(record) = self.semel().get(&key).await? else { return Ok(None) };
        offset::read(&record).map(Some).ok_or_else(|| no_offset(&key))
    }

    /// How far every stream of this pipeline has been read, in the order of their names.
    pub async fn offsets(&self) -> Result<Vec<StreamOffset>> {
        let filter = Filter { states: vec![StateKind::Done], ..self.filter(OFFSET) };
        let depth = filter.scope.len();
        let read = |record: &Record| {
            let offset = offset::read(record)?;
            // A scope that only begins like this one is another pipeline's.
            (record.key.scope().count() == depth).then_some(())?;
            Some(StreamOffset { stream: record.key.name().into(), offset, at: record.changed_at })
        };
        let mut offsets = Vec::new();
        let mut scan = Scan { filter, after: None, limit: PAGE };
        loop {
            let page = self.semel().scan(scan.clone()).await?;
            // Whose they are is not known: they must not fail the offsets of this pipeline.
            for (id, error) in &page.damaged {
                tracing::warn!(id = %id.short(), %error, "semel-stream: a record cannot be read");
            }
            offsets.extend(page.records.iter().filter_map(|record| read(record)));
            match page.next {
                Some(next) => scan.after = Some(next),
                None => break,
            }
        }
        offsets.sort_by(|one, other| one.stream.cmp(&other.stream));
        Ok(offsets)
    }

    /// Moves the offset of a stream anywhere: back, to read again what is behind it, or forward, to skip. Whoever reads
    /// the stream now is fenced. Events that have a receipt are read again, and not processed again.
    pub async fn rewind(&self, stream: &str, to: Option<Position>) -> Result<Offset> {
        let key = self.offset_key(stream)?;
        match self.semel().move_offset(&key, Move::Rewind { to }).await? {
            Moved::Moved(offset) => Ok(offset),
            Moved::Fenced(_) | Moved::Behind(_) | Moved::NoOffset => Err(no_offset(&key)),
        }
    }
}

impl Reader {
    /// Which stream.
    pub fn stream(&self) -> &Arc<str> {
        &self.stream
    }

    /// The number of this reader: whoever comes later has a greater one.
    pub fn epoch(&self) -> u64 {
        self.started_at.epoch
    }

    /// How far the stream had been read when this reader began.
    pub fn started_at(&self) -> &Offset {
        &self.started_at
    }

    /// The key of the offset's record, and the move that commits, for whoever carries it in a transaction.
    pub fn commit_move(&self, position: Position, event: Option<&str>, lag: Option<u64>) -> (&Key, Move) {
        let last_event = event.map(Into::into);
        (&self.key, Move::Commit { epoch: Some(self.epoch()), position, last_event, lag })
    }

    /// What the store's answer to [`commit_move`](Self::commit_move) means.
    pub fn committed(&self, answer: Moved) -> Result<Commit> {
        committed(answer, &self.key)
    }

    /// Everything up to here is done.
    pub async fn commit(&self, position: Position, event: Option<&str>) -> Result<Commit> {
        self.commit_knowing(position, event, None).await
    }

    /// The same, with how many events are still before this reader: for people to see.
    pub async fn commit_knowing(
        &self,
        position: Position,
        event: Option<&str>,
        lag: Option<u64>,
    ) -> Result<Commit> {
        let (key, wanted) = self.commit_move(position, event, lag);
        self.committed(self.semel.move_offset(key, wanted).await?)
    }
}

fn committed(moved: Moved, key: &Key) -> Result<Commit> {
    match moved {
        Moved::Moved(offset) => Ok(Commit::Committed(offset)),
        Moved::Fenced(offset) => Ok(Commit::Fenced(offset)),
        Moved::Behind(offset) => Ok(Commit::Behind(offset)),
        Moved::NoOffset => Err(no_offset(key)),
    }
}

fn no_offset(key: &Key) -> Error {
    let message =
        format!("the record of {key:?} is no offset; use another name for the pipeline or the stream");
    Error::new(ErrorKind::Corrupt, message)
}
