//! What an operator does to records and pipelines, written down in the audit log: of this command, or of the server that the store is
//! behind.

use std::sync::Arc;

use anyhow::Result;
use semel::record::Record;
use semel::{OperatorAnswer, Semel};
use semel_ops::lookup::Selection;
use semel_ops::operator::{Audit, EventNoted, Many, OffsetMoved, Operator, Settlement, act_on_all};
use semel_stream::{Pipeline, Position, Requeue, RequeueAsk};

use crate::args::Scope;
use crate::audit_arg::{AuditArg, account};
use crate::remote::Server;
use crate::store_arg::StoreHandle;

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
    store: &'a StoreHandle,
    by: By<'a>,
}

/// Who acts: an engine in this process, or the server that the store is behind.
enum By<'a> {
    Engine { semel: Semel, audit: Audit, name: String },
    Server(&'a Server),
}

/// A pipeline, by the names that a server knows it by.
#[derive(Clone, Copy)]
pub(crate) struct PipelineRef<'a> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) scope: &'a Scope,
    pub(crate) name: &'a str,
}

impl<'a> Actor<'a> {
    /// The audit log is opened first: what cannot be written down is not done. A server writes its own.
    pub(crate) fn on(store: &'a StoreHandle, audit: &AuditArg) -> Result<Self> {
        if let Some(server) = store.server() {
            audit.refuse_for_server()?;
            return Ok(Self { store, by: By::Server(server) });
        }
        let audit = audit.open()?;
        let semel = Semel::builder_shared(store.store()).no_sweep().build()?;
        Ok(Self { store, by: By::Engine { semel, audit, name: account() } })
    }

    /// Refuses before a question is asked, if the answer could not be acted on.
    pub(crate) fn must_act(&self) -> Result<()> {
        match &self.by {
            By::Engine { .. } => Ok(()),
            By::Server(server) => Ok(server.must_act()?),
        }
    }

    /// Acts on a record, if it is still what was shown.
    pub(crate) async fn act(
        &self,
        record: &Record,
        action: &Action,
        version: Option<u64>,
    ) -> Result<OperatorAnswer> {
        Ok(self.acted(record, action, version).await?)
    }

    /// Acts on every record of the selection, at most `limit`.
    pub(crate) async fn act_on_all(
        &self,
        selection: &Selection,
        action: &Action,
        limit: usize,
        progress: impl FnMut(&Many),
    ) -> Result<Many> {
        let act = async |record: Arc<Record>| self.acted(&record, action, Some(record.version.get())).await;
        Ok(act_on_all(&***self.store, selection.clone(), None, limit, act, progress).await?)
    }

    /// Notes an event as processed.
    pub(crate) async fn record_event(&self, of: PipelineRef<'_>, event: &str) -> Result<EventNoted> {
        Ok(match &self.by {
            By::Engine { semel, audit, name } => {
                Operator { semel, audit, name }.record_event(of.pipeline, event).await?
            }
            By::Server(server) => server.record_event(of.scope, of.name, event).await?,
        })
    }

    /// Moves the offset of a stream, if it is still in this epoch; 0 if nobody had begun to read it.
    pub(crate) async fn move_offset(
        &self,
        of: PipelineRef<'_>,
        stream: &str,
        to: Option<Position>,
        epoch: u64,
    ) -> Result<OffsetMoved> {
        Ok(match &self.by {
            By::Engine { semel, audit, name } => {
                Operator { semel, audit, name }.move_offset(of.pipeline, stream, to, Some(epoch)).await?
            }
            By::Server(server) => server.move_offset(of.scope, of.name, stream, to, epoch).await?,
        })
    }

    /// Sends dead letters of a pipeline back.
    pub(crate) async fn requeue(
        &self,
        pipeline: &Pipeline,
        asks: &[RequeueAsk],
        reason: &str,
    ) -> Result<Vec<Requeue>> {
        let (semel, audit, name) = match &self.by {
            By::Engine { semel, audit, name } => (semel, audit, name),
            By::Server(server) => return Ok(server.requeue(pipeline, asks, reason).await?),
        };
        Ok(Operator { semel, audit, name }.requeue(pipeline, asks, reason).await?)
    }

    /// Ends the engine.
    pub(crate) async fn close(self) -> Result<()> {
        match self.by {
            By::Engine { semel, .. } => Ok(semel.close().await?),
            By::Server(_) => Ok(()),
        }
    }

    async fn acted(
        &self,
        record: &Record,
        action: &Action,
        version: Option<u64>,
    ) -> semel::Result<OperatorAnswer> {
        match &self.by {
            By::Engine { semel, audit, name } => {
                acted(Operator { semel, audit, name }, record, action, version).await
            }
            By::Server(server) => server.act(record, action).await,
        }
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
