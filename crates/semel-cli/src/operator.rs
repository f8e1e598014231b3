//! What an operator does to records, written down in the audit log.

use std::sync::Arc;

use anyhow::Result;
use semel::record::Record;
use semel::{OperatorAnswer, Semel};
use semel_ops::lookup::Selection;
use semel_ops::operator::{Audit, Many, Operator, Settlement, act_on_all};
use semel_ops::store_url::Opened;
use semel_stream::{Pipeline, Requeue, RequeueAsk};

use crate::audit_arg::{AuditArg, account};

/// What is done to a record.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Takes a run away, or lets a held record run again.
    Release { reason: String },
    /// Settles a held record.
    Resolve(Settlement),
}

impl Action {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Self::Release { .. } | Self::Resolve(Settlement::Release { .. }) => "Release",
            Self::Resolve(_) => "Complete",
        }
    }

    /// What would be done, before a number of records.
    pub(crate) fn meaning(&self) -> &'static str {
        match self {
            Self::Release { .. } | Self::Resolve(Settlement::Release { .. }) => "the next claim runs for",
            Self::Resolve(_) => "every retry gets what was given, for",
        }
    }

    /// What the operator must know before agreeing.
    pub(crate) fn warning(&self) -> &'static str {
        match self {
            Self::Release { .. } | Self::Resolve(Settlement::Release { .. }) => {
                "The next claim of each runs it again. If its effect landed after all, it happens twice."
            }
            Self::Resolve(_) => {
                "Each becomes done for good: every retry of each gets the same answer. That cannot be undone."
            }
        }
    }
}

/// Acts on records of one store.
pub(crate) struct Actor<'a> {
    store: &'a Opened,
    semel: Semel,
    audit: Audit,
    name: String,
}

impl<'a> Actor<'a> {
    /// The audit log is opened first: what cannot be written down is not done.
    pub(crate) fn on(store: &'a Opened, audit: &AuditArg) -> Result<Self> {
        let audit = audit.open()?;
        let semel = Semel::builder_shared(store.store()).no_sweep().build()?;
        Ok(Self { store, semel, audit, name: account() })
    }

    /// Acts on a record, if it is still what was shown.
    pub(crate) async fn act(
        &self,
        record: &Record,
        action: &Action,
        version: Option<u64>,
    ) -> Result<OperatorAnswer> {
        Ok(acted(self.operator(), record, action, version).await?)
    }

    /// Acts on every record of the selection, at most `limit`.
    pub(crate) async fn act_on_all(
        &self,
        selection: &Selection,
        action: &Action,
        limit: usize,
        progress: impl FnMut(&Many),
    ) -> Result<Many> {
        let operator = self.operator();
        let act =
            async |record: Arc<Record>| acted(operator, &record, action, Some(record.version.get())).await;
        Ok(act_on_all(&**self.store, selection.clone(), None, limit, act, progress).await?)
    }

    /// Sends dead letters of a pipeline back.
    pub(crate) async fn requeue(
        &self,
        pipeline: &Pipeline,
        asks: &[RequeueAsk],
        reason: &str,
    ) -> Result<Vec<Requeue>> {
        Ok(self.operator().requeue(pipeline, asks, reason).await?)
    }

    /// Ends the engine.
    pub(crate) async fn close(self) -> Result<()> {
        Ok(self.semel.close().await?)
    }

    fn operator(&self) -> Operator<'_> {
        Operator { semel: &self.semel, audit: &self.audit, name: &self.name }
    }
}

async fn acted(
    operator: Operator<'_>,
    record: &Record,
    action: &Action,
    version: Option<u64>,
) -> semel::Result<OperatorAnswer> {
    match action {
        Action::Release { reason } => operator.release(record, reason, version).await,
        Action::Resolve(settlement) => operator.resolve(record, settlement, version).await,
    }
}
