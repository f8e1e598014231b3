//! A pipeline: receipts and offsets under one name, on any store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use semel::record::Record;
use semel::store::Filter;
use semel::{Claim, Decision, Key, Lapse, Outcome, RecordedOnce, Result, Semel};

/// How long a receipt is remembered, unless the pipeline says otherwise. An event that is delivered again after that is
/// processed again.
pub const RECEIPT_RETENTION_DEFAULT: Duration = Duration::from_hours(24 * 7);

/// The operation of receipts.
pub(crate) const RECEIPT: &str = "receipt";
/// The operation of offsets.
pub(crate) const OFFSET: &str = "offset";

/// Processes events once, under a name of its own. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pipeline {
    semel: Semel,
    policy: Arc<Policy>,
}

#[derive(Debug)]
struct Policy {
    /// The tenant's path, and the pipeline's name as its last part.
    scope: Vec<Box<str>>,
    retention: Duration,
    lease: Option<Duration>,
    lapse: Lapse,
}

/// A pipeline with choices of your own.
#[derive(Debug)]
#[must_use = "a builder builds nothing until it is told to"]
pub struct PipelineBuilder {
    semel: Semel,
    policy: Policy,
}

impl PipelineBuilder {
    /// In the namespace of this tenant: up to seven parts, outermost first.
    pub fn scope<S: IntoIterator<Item: AsRef<str>>>(mut self, scope: S) -> Self {
        let name = self.policy.scope.pop();
        self.policy.scope = scope.into_iter().map(|part| part.as_ref().into()).chain(name).collect();
        self
    }

    /// How long a receipt is remembered.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.policy.retention = retention;
        self
    }

    /// How long a handler's permit is good without renewal.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.policy.lease = Some(lease);
        self
    }

    /// What it means when a consumer dies while it processes an event.
    pub fn lapse(mut self, lapse: Lapse) -> Self {
        self.policy.lapse = lapse;
        self
    }

    /// The pipeline, unless its name or scope cannot be one.
    pub fn build(self) -> Result<Pipeline> {
        let pipeline = Pipeline { semel: self.semel, policy: Arc::new(self.policy) };
        pipeline.offset_key("any")?;
        Ok(pipeline)
    }
}

impl Pipeline {
    /// The pipeline of this name, under the default policy: receipts for seven days, a lapsed run is run again.
    pub fn new(semel: &Semel, name: &str) -> Result<Self> {
        Self::builder(semel, name).build()
    }

    /// A pipeline with choices of your own.
    pub fn builder(semel: &Semel, name: &str) -> PipelineBuilder {
        let policy = Policy {
            scope: vec![name.into()],
            retention: RECEIPT_RETENTION_DEFAULT,
            lease: None,
            lapse: Lapse::Rerun,
        };
        PipelineBuilder { semel: semel.clone(), policy }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        self.policy.scope.last().map_or("", |name| name)
    }

    /// The engine that it runs on.
    pub fn semel(&self) -> &Semel {
        &self.semel
    }

    /// Which of these events have no receipt yet, in one round trip: one answer for each, in their order. An event that is
    /// being processed counts as unseen; one whose record cannot be read is an error of its own.
    pub async fn unseen(&self, events: &[impl AsRef<str>]) -> Result<Vec<Result<bool>>> {
        let keys: Result<Vec<_>> = events.iter().map(|event| self.receipt_key(event.as_ref())).collect();
        let records = self.semel.get_all(&keys?).await?;
        let is_unseen = |record: Option<Record>| record.is_none_or(|record| record.outcome().is_none());
        Ok(records.into_iter().map(|record| record.map(is_unseen)).collect())
    }

    /// Notes that these events are processed, with what came of each, in a round trip or two; one answer for each, in
    /// their order: an event whose record cannot be read fails alone. For effects that are harmless to repeat, and for
    /// events that shall be passed over.
    pub async fn record<E: AsRef<str>>(
        &self,
        events: impl IntoIterator<Item = (E, Outcome)>,
    ) -> Result<Vec<Result<RecordedOnce>>> {
        let claims: Result<Vec<_>> = events
            .into_iter()
            .map(|(event, outcome)| Ok((self.claim_of(event.as_ref())?, outcome)))
            .collect();
        let recording = claims?.into_iter().map(|(claim, outcome)| self.semel.record_once(claim, outcome));
        Ok(join_all(recording).await)
    }

    /// Asks to process one event.
    pub async fn claim(&self, event: &str) -> Result<Decision> {
        self.semel.claim(self.claim_of(event)?).await
    }

    /// The claim of an event, under this pipeline's policy.
    pub fn claim_of(&self, event: &str) -> Result<Claim> {
        Ok(self.claim_at(&self.receipt_key(event)?, event))
    }

    /// The claim of an event under this key, under this pipeline's policy.
    pub(crate) fn claim_at(&self, key: &Key, event: &str) -> Claim {
        let claim =
            Claim::new(key).retention(self.policy.retention).lapse(self.policy.lapse).first_event(event);
        match self.policy.lease {
            Some(lease) => claim.lease(lease),
            None => claim,
        }
    }

    /// The key of an event's receipt.
    pub fn receipt_key(&self, event: &str) -> Result<Key> {
        Key::scoped(&self.policy.scope, RECEIPT, event)
    }

    /// The key of a stream's offset.
    pub fn offset_key(&self, stream: &str) -> Result<Key> {
        Key::scoped(&self.policy.scope, OFFSET, stream)
    }

    /// A key in this pipeline's scope.
    pub(crate) fn key(&self, operation: &str, name: &str) -> Result<Key> {
        Key::scoped(&self.policy.scope, operation, name)
    }

    /// All records in this pipeline's scope, and in those behind it.
    pub(crate) fn filter_all(&self) -> Filter {
        Filter { scope: self.policy.scope.clone(), ..Filter::default() }
    }

    /// The records of one kind that this pipeline has.
    pub(crate) fn filter(&self, operation: &str) -> Filter {
        Filter { scope: self.policy.scope.clone(), operation: Some(operation.into()), ..Filter::default() }
    }
}
