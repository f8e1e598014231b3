//! How far each pipeline has read its streams.

use semel::clock::Timestamp;
use semel::machine::offset::{self, Offset};
use semel::record::{Record, StateKind};
use semel::store::Filter;
use serde::{Serialize, Serializer};

use super::parts::Moment;

/// The operation of offsets.
const OFFSET: &str = "offset";

/// Which offsets are wanted.
#[derive(Clone, Debug, Default)]
pub struct OffsetsWanted {
    /// The tenant; without a pipeline, also those below it.
    pub scope: Vec<Box<str>>,
    /// The name of one pipeline.
    pub pipeline: Option<Box<str>>,
}

impl OffsetsWanted {
    /// What a store is asked for.
    pub fn filter(&self) -> Filter {
        let pipeline = self.pipeline.as_deref().map(|name| name.trim().into());
        Filter {
            scope: self.scope.iter().cloned().chain(pipeline).collect(),
            operation: Some(OFFSET.into()),
            states: vec![StateKind::Done],
            ..Filter::default()
        }
    }

    /// The offset in this record, if it is a wanted one.
    pub fn read(&self, record: &Record) -> Option<OffsetRow> {
        let offset = offset::read(record)?;
        let scope: Vec<Box<str>> = record.key.scope().map(Into::into).collect();
        // A scope that only begins like this one is another pipeline's.
        let is_wanted = self.pipeline.is_none() || scope.len() == self.scope.len().saturating_add(1);
        is_wanted.then(|| OffsetRow {
            scope,
            stream: record.key.name().into(),
            offset,
            at: record.changed_at,
        })
    }
}

/// One offset.
#[derive(Clone, Debug)]
pub struct OffsetRow {
    /// The tenant's path, and the pipeline as its last part.
    pub scope: Vec<Box<str>>,
    /// What is read.
    pub stream: Box<str>,
    /// How far.
    pub offset: Offset,
    /// Since when.
    pub at: Timestamp,
}

/// How far a pipeline has read a stream.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Offset))]
pub struct OffsetView<'a> {
    /// Who reads.
    #[cfg_attr(feature = "openapi", schema(example = "billing"))]
    pub pipeline: &'a str,
    /// The tenant's path, outermost first.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub scope: &'a [Box<str>],
    /// What is read.
    #[cfg_attr(feature = "openapi", schema(example = "orders/0"))]
    pub stream: &'a str,
    /// How far; `null` before the first event. Text, because not every reader of JSON has integers of 128 bits.
    pub position: Option<String>,
    /// The last event that counts as read.
    pub last_event: Option<&'a str>,
    /// The reader's epoch: a commit from an older one is refused.
    pub epoch: u64,
    /// How many events its reader still had before it then, over all that it reads; `null` if it did not know.
    pub lag: Option<u64>,
    /// Since when.
    pub since: Moment,
}

impl OffsetRow {
    /// For scripts.
    pub fn view(&self) -> OffsetView<'_> {
        let (pipeline, scope) = self.scope.split_last().map_or(("", &[][..]), |(last, rest)| (&**last, rest));
        OffsetView {
            pipeline,
            scope,
            stream: &self.stream,
            position: self.offset.position.map(|position| position.to_string()),
            last_event: self.offset.last_event.as_deref(),
            epoch: self.offset.epoch,
            lag: self.offset.lag,
            since: Moment(self.at),
        }
    }
}

impl Serialize for OffsetRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.view().serialize(serializer)
    }
}
