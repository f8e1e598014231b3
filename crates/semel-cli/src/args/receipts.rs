//! `semel receipts`.

use clap::Subcommand;
use semel_stream::EventState;

use super::Command;
use super::place::Place;
use super::refused::{Meaning, at_least_one, refused};
use super::scope::{Scope, scope};
use crate::keys::Bytes;
use crate::receipts::{Changed, Of, Receipts, ShowReceipt};
use crate::terminal::question::Consent;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct TypedReceipts {
    #[command(subcommand)]
    command: Option<TypedChanges>,
    /// The pipeline
    #[arg(required = true)]
    pipeline: Option<String>,
    /// Whose pipeline it is
    #[arg(long, value_name = "A/B", value_parser = scope)]
    scope: Option<Scope>,
    /// Only events that could not be processed and were put aside
    #[arg(long)]
    dead: bool,
    /// Only events that wait for a person
    #[arg(long)]
    held: bool,
    /// Only the event with this key
    #[arg(long, value_name = "KEY")]
    event: Option<String>,
    /// How many events at most: the newest
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct TypedEvent {
    /// The pipeline
    pipeline: String,
    /// The key of the event, as `semel receipts` shows it
    event: String,
    /// Whose pipeline it is
    #[arg(long, value_name = "A/B", value_parser = scope)]
    scope: Option<Scope>,
}

#[derive(Debug, Subcommand)]
enum TypedChanges {
    /// Show the whole life of one event in a pipeline
    #[command(after_help = "Examples:\n  \
        semel receipts show orders order-1042 --outcome     with what the command printed")]
    Show {
        #[command(flatten)]
        event: TypedEvent,
        /// Show what the command printed
        #[arg(long)]
        outcome: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Note an event as processed, without processing it; asks first
    ///
    /// For events that are to be passed over, and for held ones whose effect you know to have happened. It cannot be undone.
    #[command(after_help = "Examples:\n  \
        semel receipts record orders order-1042             whoever delivers it again is told: a duplicate")]
    Record {
        #[command(flatten)]
        event: TypedEvent,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Have a held event processed at its next delivery; asks first
    ///
    /// For an event whose effect you know not to have happened. One that was put aside has a receipt, and is not processed
    /// again: send it anew, under a key of its own.
    #[command(after_help = "Examples:\n  \
        semel receipts release orders order-1042            shows what it means, and asks")]
    Release {
        #[command(flatten)]
        event: TypedEvent,
        /// Why, for whoever looks at it next
        #[arg(long, value_name = "TEXT", default_value = "released by hand")]
        reason: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

impl TypedReceipts {
    pub(super) fn meaning(self, place: &Place) -> Meaning<Command> {
        let store = place.store()?;
        let consent = |yes| if yes { Consent::Given } else { Consent::Ask };
        Ok(match self.command {
            None => {
                let Some(pipeline) = self.pipeline else { return Err(refused("which pipeline?")) };
                let mut states = Vec::new();
                states.extend(self.dead.then_some(EventState::DeadLetter));
                states.extend(self.held.then_some(EventState::Held));
                Command::Receipts(Receipts {
                    store,
                    scope: self.scope.unwrap_or_default().0,
                    pipeline,
                    states,
                    event: self.event.map(Into::into),
                    limit: at_least_one("--limit", self.limit)?.get(),
                    json: self.json,
                })
            }
            Some(TypedChanges::Show { event, outcome, json }) => {
                let bytes = if outcome { Bytes::Shown } else { Bytes::Hidden };
                Command::ShowReceipt(ShowReceipt { of: event.of(store), bytes, json })
            }
            Some(TypedChanges::Record { event, yes }) => {
                Command::RecordReceipt(Changed { of: event.of(store), reason: None, consent: consent(yes) })
            }
            Some(TypedChanges::Release { event, reason, yes }) => Command::ReleaseReceipt(Changed {
                of: event.of(store),
                reason: Some(reason),
                consent: consent(yes),
            }),
        })
    }
}

impl TypedEvent {
    fn of(self, store: semel_ops::store_url::Address) -> Of {
        let Self { pipeline, event, scope } = self;
        Of { store, scope: scope.unwrap_or_default().0, pipeline, event }
    }
}
