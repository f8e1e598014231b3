//! Which store, which source, which handler.

use std::fmt;

use super::deck::Point;

/// Where records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    File,
    Postgres,
}

/// Where events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A file of lines: read by one, from the committed offset on.
    Lines,
    /// Shared: the broker knows what was acknowledged, and the offset follows it.
    Nats,
    /// Shared, and without offsets.
    RabbitMq,
}

/// What an effect is, and what the lapse of a lease means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    /// A line in a file; a lapsed run is run again.
    Rerun,
    /// The same; a lapsed run is held until somebody has looked.
    Hold,
    /// A row in PostgreSQL, in the transaction of its receipt.
    Transaction,
}

/// What a control does in the wrong order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sabotage {
    CommitFirst,
    AcknowledgeFirst,
    Apart,
}

/// One store, one source, one handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) store: Store,
    pub(super) source: Source,
    pub(super) handler: Handler,
    pub(super) sabotage: Option<Sabotage>,
}

impl Scene {
    /// All that there are.
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for store in [Store::File, Store::Postgres] {
            for source in [Source::Lines, Source::Nats, Source::RabbitMq] {
                for handler in [Handler::Rerun, Handler::Hold, Handler::Transaction] {
                    // A transaction is where the records are.
                    if handler != Handler::Transaction || store == Store::Postgres {
                        all.push(Self { store, source, handler, sabotage: None });
                    }
                }
            }
        }
        all
    }

    /// Those that must be found out.
    pub(super) fn controls() -> [Self; 4] {
        let control =
            |store, source, handler, sabotage| Self { store, source, handler, sabotage: Some(sabotage) };
        [
            control(Store::File, Source::Lines, Handler::Rerun, Sabotage::CommitFirst),
            control(Store::File, Source::Nats, Handler::Rerun, Sabotage::AcknowledgeFirst),
            control(Store::File, Source::RabbitMq, Handler::Rerun, Sabotage::AcknowledgeFirst),
            control(Store::Postgres, Source::Lines, Handler::Transaction, Sabotage::Apart),
        ]
    }

    /// The steps that happen here.
    pub(super) fn points(self) -> Vec<Point> {
        let has_offsets = self.source != Source::RabbitMq;
        Point::ALL.into_iter().filter(|point| has_offsets || *point != Point::Offset).collect()
    }
}

impl Handler {
    /// What the victim is told: what an effect is, and what a lapse means.
    pub(super) const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Rerun => ["plain", "rerun"],
            Self::Hold => ["plain", "hold"],
            Self::Transaction => ["transaction", "rerun"],
        }
    }
}

impl Sabotage {
    /// The victim's word for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::CommitFirst => "commit-first",
            Self::AcknowledgeFirst => "acknowledge-first",
            Self::Apart => "apart",
        }
    }
}

impl fmt::Display for Sabotage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CommitFirst => "committing the offset first",
            Self::AcknowledgeFirst => "acknowledging first",
            Self::Apart => "the effect beside the transaction",
        })
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.source {
            Source::Lines => "lines",
            Source::Nats => "NATS",
            Source::RabbitMq => "RabbitMQ",
        })?;
        f.write_str(match self.store {
            Store::File => " on the file store, ",
            Store::Postgres => " on PostgreSQL, ",
        })?;
        f.write_str(match self.handler {
            Handler::Rerun => "rerun",
            Handler::Hold => "hold",
            Handler::Transaction => "in one transaction",
        })
    }
}
