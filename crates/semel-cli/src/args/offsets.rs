//! `semel offsets`.

use clap::Subcommand;
use semel_stream::Position;

use super::Command;
use super::consume::position;
use super::place::Place;
use super::refused::{Meaning, refused};
use super::scope::{Scope, scope};
use crate::offsets::{Move, Offsets};
use crate::terminal::question::Consent;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct TypedOffsets {
    #[command(subcommand)]
    command: Option<TypedMoves>,
    /// Only this pipeline
    pipeline: Option<String>,
    /// Only pipelines of this tenant
    #[arg(long, value_name = "A/B", value_parser = scope)]
    scope: Option<Scope>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum TypedMoves {
    /// Have a stream read again from somewhere, or skip a part of it; asks first
    ///
    /// Whoever reads the stream now is fenced: it can commit no more, and ends. Whoever reads it next begins behind the new
    /// position. Events that have a receipt are read again, but not processed again. For streams that one reader reads at a
    /// time: files and Kafka's partitions. Of a queue that many share, the broker keeps the place.
    #[command(after_help = "Examples:\n  \
        semel offsets move orders events.jsonl --to start        read all of it again\n  \
        semel offsets move orders orders/0 --to 41991 --yes      what is behind 41991 comes next")]
    Move {
        /// The pipeline
        pipeline: String,
        /// The stream, as `semel offsets` shows it
        stream: String,
        /// The last position that counts as read, or `start`
        #[arg(long, value_name = "POSITION|start", value_parser = wanted)]
        to: Wanted,
        /// Whose pipeline it is
        #[arg(long, value_name = "A/B", value_parser = scope)]
        scope: Option<Scope>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// Where an offset is to go; `None` for the start.
#[derive(Clone, Copy, Debug)]
struct Wanted(Option<Position>);

fn wanted(text: &str) -> Result<Wanted, String> {
    position(text).map(Wanted)
}

impl TypedOffsets {
    pub(super) fn meaning(self, place: &Place) -> Meaning<Command> {
        let store = place.store()?;
        Ok(match self.command {
            None => {
                let (scope, pipeline) = (self.scope.unwrap_or_default().0, self.pipeline);
                if pipeline.as_deref().is_some_and(|pipeline| pipeline.trim().is_empty()) {
                    return Err(refused("the pipeline has no name"));
                }
                Command::Offsets(Offsets { store, scope, pipeline, json: self.json })
            }
            Some(TypedMoves::Move { pipeline, stream, to, scope, yes }) => Command::MoveOffset(Move {
                store,
                scope: scope.unwrap_or_default().0,
                pipeline,
                stream,
                to: to.0,
                consent: if yes { Consent::Given } else { Consent::Ask },
            }),
        })
    }
}
