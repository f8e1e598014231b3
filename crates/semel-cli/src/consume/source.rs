//! A source that is there, or what to do about it.

use anyhow::{Context, Result};
use semel_stream::source::{LinesSource, Source};

use super::address::{FileEnd, SourceAddress, SourceKind};

/// The source, connected: what is wrong with its address is told now, and not when the first event is wanted.
pub(super) async fn open(address: &SourceAddress) -> Result<Box<dyn Source>> {
    opened(&address.kind).await.with_context(|| format!("cannot read {address}"))
}

async fn opened(kind: &SourceKind) -> Result<Box<dyn Source>> {
    Ok(match kind {
        SourceKind::Stdin => Box::new(LinesSource::stdin()),
        SourceKind::File { path, end } => {
            Box::new(LinesSource::open(path)?.follow(*end == FileEnd::IsWaitedAt))
        }
        SourceKind::Nats { .. }
        | SourceKind::RabbitMq { .. }
        | SourceKind::Redis { .. }
        | SourceKind::Kafka { .. } => anyhow::bail!("this semel was built without that broker"),
    })
}
