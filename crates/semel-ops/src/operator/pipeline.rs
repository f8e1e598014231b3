//! What an operator does to a pipeline: notes an event as processed, or has a stream read from somewhere else.

use semel::record::{Record, StateKind};
use semel::{ErrorKind, Key, Outcome, OutcomeKind, RecordedOnce, Resolution, Resolved, Result};
use semel_stream::{EventId, Offset, Pipeline, Position};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Action, Entry, Noted, Operator};

/// The kind of a receipt that no run stands behind.
const BY_HAND: &str = "recorded";
/// Why an event is noted, in the audit log.
const NOTED: &str = "noted as processed, without a run";

/// What became of noting an event as processed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RecordEventAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum EventNoted {
    /// It has a receipt now.
    Recorded,
    /// It had a receipt before. Nothing was changed.
    AlreadyRecorded,
    /// It is being processed. Nothing was changed.
    Busy {
        /// By whom.
        owner: String,
    },
    /// It is no longer what it was a moment before. Nothing was changed: look again.
    Changed,
}

/// What became of moving an offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = MoveOffsetAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum OffsetMoved {
    /// It is there now, and whoever read the stream is fenced.
    Moved {
        /// The last position that counts as read; `null` for the start. Text, because not every reader of JSON has integers of 128 bits.
        position: Option<String>,
        /// Its epoch. Whoever reads next has a greater one.
        epoch: u64,
    },
    /// Many share the stream, so its broker keeps the place. Nothing was changed.
    Shared,
    /// Another reader has begun since it was shown. Nothing was changed: look again.
    Changed,
}

impl Operator<'_> {
    /// Notes an event as processed, without processing it. Acts through the pipeline's engine.
    pub async fn record_event(&self, pipeline: &Pipeline, event: &str) -> Result<EventNoted> {
        let last = last_run(pipeline, event).await?;
        let key =
            last.as_ref().map_or_else(|| pipeline.receipt_key(event), |record| Ok(record.key.clone()))?;
        let seen = last.as_ref().map(|record| record.state.kind());
        if seen == Some(StateKind::Done) {
            return Ok(EventNoted::AlreadyRecorded);
        }
        let asked = self.entry(&key, Action::RecordEvent, seen, NOTED);
        self.audit.note(asked).await?;
        let noted = noted(pipeline, &key, event, seen).await;
        let is_done = noted.as_ref().map(|noted| *noted == EventNoted::Recorded);
        self.note_end_of(asked, is_done).await;
        noted
    }

    /// Moves the offset of a stream, if it is still in the epoch that was shown: a reader that began since is not fenced unseen.
    pub async fn move_offset(
        &self,
        pipeline: &Pipeline,
        stream: &str,
        to: Option<Position>,
        epoch: Option<u64>,
    ) -> Result<OffsetMoved> {
        let key = pipeline.offset_key(stream)?;
        let found = pipeline.offset(stream).await?;
        let own = found.as_ref().map(|offset| offset.epoch);
        if own == Some(0) {
            return Ok(OffsetMoved::Shared);
        }
        if epoch.is_some_and(|epoch| epoch != own.unwrap_or_default()) {
            return Ok(OffsetMoved::Changed);
        }
        let reason = format!("moved from {} to {}", place(found.and_then(|found| found.position)), place(to));
        let asked = self.entry(&key, Action::MoveOffset, own.map(|_| StateKind::Done), &reason);
        self.audit.note(asked).await?;
        let moved = pipeline.rewind(stream, to).await;
        self.note_end_of(asked, moved.as_ref().map(|_| true)).await;
        let Offset { position, epoch, .. } = moved?;
        Ok(OffsetMoved::Moved { position: position.map(|position| position.to_string()), epoch })
    }

    fn entry<'b>(
        &'b self,
        key: &'b Key,
        action: Action,
        seen: Option<StateKind>,
        reason: &'b str,
    ) -> Entry<'b> {
        Entry { caller: self.name, action, key, seen, reason, result: Noted::Asked }
    }

    async fn note_end_of(&self, asked: Entry<'_>, is_done: std::result::Result<bool, &semel::Error>) {
        let result = match is_done {
            Ok(true) => Noted::Done,
            Err(error) if error.kind() == ErrorKind::Unknown => Noted::Unknown,
            Ok(false) | Err(_) => Noted::Refused,
        };
        self.note_result(asked, result).await;
    }
}

/// The record of the last run of an event: of its last requeue, if it was a dead letter.
async fn last_run(pipeline: &Pipeline, event: &str) -> Result<Option<Record>> {
    let ids = [EventId::Keyed(event.into()), EventId::Keyless(event.into())];
    for found in pipeline.events(&ids).await? {
        if let Some(found) = found? {
            return pipeline.semel().get(&pipeline.run_key(&found.id(), found.requeue)?).await;
        }
    }
    Ok(None)
}

async fn noted(pipeline: &Pipeline, key: &Key, event: &str, seen: Option<StateKind>) -> Result<EventNoted> {
    let outcome =
        Outcome::new(OutcomeKind::from_word(BY_HAND), "").details(&json!({ "by": "semel receipts record" }));
    if seen == Some(StateKind::Held) {
        return Ok(match pipeline.semel().resolve(key, Resolution::Done(outcome)).await? {
            Resolved::Resolved => EventNoted::Recorded,
            Resolved::NotHeld => EventNoted::Changed,
        });
    }
    let answer = pipeline.record([(event, outcome)]).await?.into_iter().next().transpose()?;
    Ok(match answer {
        Some(RecordedOnce::Recorded(_)) => EventNoted::Recorded,
        Some(RecordedOnce::Replay(_)) => EventNoted::AlreadyRecorded,
        Some(RecordedOnce::Busy(busy)) => EventNoted::Busy { owner: busy.owner().to_owned() },
        Some(RecordedOnce::Held(_) | RecordedOnce::Mismatch(_)) | None => EventNoted::Changed,
    })
}

fn place(position: Option<Position>) -> String {
    position.map_or_else(|| "the start".to_owned(), |position| format!("position {position}"))
}
