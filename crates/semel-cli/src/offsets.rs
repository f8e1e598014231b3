//! `semel offsets`: how far each pipeline has read its streams; `semel offsets move`, which asks first.

use std::cmp::Ordering;

use anyhow::{Result, bail};
use clap::Subcommand;
use semel::clock::Timestamp;
use semel_ops::format::scope;
use semel_ops::lookup::walk::Walk;
use semel_ops::operator::OffsetMoved;
use semel_ops::record_json::offset::{OffsetRow, OffsetsWanted};
use semel_stream::{Offset, Pipeline, Position};

use crate::args::{Scope, refused};
use crate::audit_arg::AuditArg;
use crate::operator::{Actor, PipelineRef};
use crate::store_arg::StoreArg;
use crate::terminal::{Bar, Cell, Column, Consent, Table, counted, grouped, moment, out, style, text};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct OffsetsArgs {
    #[command(subcommand)]
    command: Option<OffsetsCommand>,
    /// Only this pipeline
    pipeline: Option<String>,
    /// Only pipelines of this tenant
    #[arg(long, value_name = "A/B", value_parser = scope::parse)]
    scope: Option<Scope>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum OffsetsCommand {
    /// Have a stream read again from somewhere, or skip a part of it; asks first
    ///
    /// Whoever reads the stream now is fenced: it can commit no more, and ends. Whoever reads it next begins behind the new
    /// position. Events that have a receipt are read again, but not processed again. For streams that one reader reads at a
    /// time: files and Kafka's partitions. Of a queue that many share, the broker keeps the place.
    #[command(after_help = "Examples:\n  \
        semel offsets move orders events.jsonl --to start        read all of it again\n  \
        semel offsets move orders orders/0 --to 41991 --yes      what is behind 41991 comes next")]
    Move(MoveArgs),
}

#[derive(Debug, clap::Args)]
struct MoveArgs {
    /// The pipeline
    pipeline: String,
    /// The stream, as `semel offsets` shows it
    stream: String,
    /// The last position that counts as read, or `start`
    #[arg(long, value_name = "POSITION|start", value_parser = position)]
    to: MoveTo,
    /// Whose pipeline it is
    #[arg(long, value_name = "A/B", value_parser = scope::parse)]
    scope: Option<Scope>,
    #[command(flatten)]
    audit: AuditArg,
    #[command(flatten)]
    consent: Consent,
}

/// The last position that counts as read; `None` for the start.
type MoveTo = Option<Position>;

/// A position, or `start`; `1700000000000-3` as Redis writes it.
fn position(text: &str) -> Result<MoveTo, String> {
    if text == "start" {
        return Ok(None);
    }
    let number = match text.split_once('-') {
        None => text.parse::<u128>().ok(),
        Some((millis, sequence)) => {
            let (millis, sequence) = (millis.parse::<u64>().ok(), sequence.parse::<u64>().ok());
            millis.zip(sequence).map(|(millis, sequence)| u128::from(millis) << 64 | u128::from(sequence))
        }
    };
    number.map(|number| Some(Position::new(number))).ok_or_else(|| {
        format!("`{text}` is no position; write a number as `semel offsets` shows it, or start")
    })
}

impl OffsetsArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let address = store.address()?;
        if let Some(OffsetsCommand::Move(args)) = self.command {
            return args.run(store).await;
        }
        if self.pipeline.as_deref().is_some_and(|pipeline| pipeline.trim().is_empty()) {
            return Err(refused("the pipeline has no name").into());
        }
        let store = store.open_existing().await?;
        let (mut rows, mut now) = (Vec::new(), Timestamp::from_micros(0));
        let bar = Bar::of_ids("looking");
        let pipeline = self.pipeline.as_deref().map(Into::into);
        let wanted = OffsetsWanted { scope: self.scope.unwrap_or_default(), pipeline };
        let mut walk = Walk::new(&**store, wanted.filter(), None);
        while let Some(page) = walk.next().await? {
            now = page.now;
            for (id, error) in &page.damaged {
                eprintln!("warning: the record {id} cannot be read: {error}");
            }
            rows.extend(page.records.iter().filter_map(|record| wanted.read(record)));
            bar.walked(walk.after(), rows.len() as u64);
        }
        drop(bar);
        rows.sort_by(|one, other| (&one.scope, &one.stream).cmp(&(&other.scope, &other.stream)));
        if self.json {
            return rows.iter().try_for_each(out::json);
        }
        if rows.is_empty() {
            let whose = self.pipeline.map_or_else(String::new, |pipeline| format!(" of {pipeline}"));
            return out::line(&format!(
                "There are no offsets{whose} in {address}: nobody has begun to read."
            ));
        }
        table(&rows, now).print()?;
        let streams = counted(rows.len() as u64, "stream");
        out::quiet(&format!("{streams}."))
    }
}

impl MoveArgs {
    async fn run(self, store: &StoreArg) -> Result<()> {
        let scope = self.scope.unwrap_or_default();
        let (store, pipeline) = store.open_pipeline(&self.pipeline, Some(scope.clone())).await?;
        let actor = Actor::on(&store, &self.audit)?;
        let name = format!("{} of {}", text::shown(&self.stream), text::shown(&self.pipeline));
        let found = pipeline.offset(&self.stream).await?;
        if let Some(Offset { epoch: 0, .. }) = found {
            bail!(shared(&name));
        }
        actor.must_act()?;
        let known = if found.is_none() { streams(&pipeline).await? } else { String::new() };
        let what = meaning(&name, found.as_ref(), self.to, &known);
        self.consent.ask(&what, "Move it?")?;
        let of = PipelineRef { pipeline: &pipeline, scope: &scope, name: &self.pipeline };
        let epoch = found.map_or(0, |offset| offset.epoch);
        match actor.move_offset(of, &self.stream, self.to, epoch).await? {
            OffsetMoved::Moved { epoch, .. } => out::line(&format!(
                "Moved {name} to {}: whoever reads it next, from epoch {} on, begins there.",
                place(self.to),
                epoch.saturating_add(1)
            )),
            OffsetMoved::Shared => bail!(shared(&name)),
            OffsetMoved::Changed => {
                bail!(
                    "another reader of {name} has begun meanwhile, and nothing was changed. Look again with `semel offsets`"
                )
            }
        }
    }
}

fn shared(name: &str) -> String {
    format!(
        "{name} is shared by many readers, and nothing was changed: its broker keeps what was acknowledged. Have the broker \
         deliver again, or read it under another --pipeline name"
    )
}

fn table(rows: &[OffsetRow], now: Timestamp) -> Table {
    let mut table = Table::new(vec![
        Column::elastic("pipeline", 8),
        Column::elastic("stream", 8),
        Column::number("position"),
        Column::elastic("last event", 10),
        Column::number("epoch"),
        Column::number("lag"),
        Column::number("since"),
    ]);
    for row in rows {
        let position = row.offset.position.map_or_else(|| "start".to_owned(), |at| at.to_string());
        table.row(vec![
            Cell::styled(&scope::shown(row.scope.iter().map(|part| &**part)), style::strong()),
            Cell::new(&row.stream),
            Cell::new(&position),
            Cell::new(row.offset.last_event.as_deref().unwrap_or("-")),
            Cell::new(&row.offset.epoch.to_string()),
            Cell::new(&row.offset.lag.map_or_else(|| "-".to_owned(), grouped)),
            Cell::styled(&moment::relative(row.at, now), style::quiet()),
        ]);
    }
    table
}

async fn streams(pipeline: &Pipeline) -> Result<String> {
    let names: Vec<_> = pipeline.offsets().await?.iter().map(|offset| text::shown(&offset.stream)).collect();
    Ok(if names.is_empty() { "none".to_owned() } else { names.join(", ") })
}

/// What a move means, for whoever has to agree.
fn meaning(name: &str, found: Option<&Offset>, to: Option<Position>, known: &str) -> String {
    let Some(offset) = found else {
        return format!(
            "Nobody has begun to read {name}: is that what it is called? This pipeline has read: {known}.\n\
             Whoever begins starts behind {}.",
            place(to)
        );
    };
    let direction = match to.cmp(&offset.position) {
        Ordering::Less => {
            "What is behind it is read again. Events that have a receipt are not processed again; those whose retention is\n\
             over are."
        }
        Ordering::Greater => "What is between the two is skipped: nobody processes it.",
        Ordering::Equal => "That is where it is.",
    };
    format!(
        "{name}: from {} to {} (epoch {}).\n{direction}\n\
         Whoever reads it now is fenced: its next commit is refused, and it ends. Start it again afterwards.",
        place(offset.position),
        place(to),
        offset.epoch
    )
}

fn place(position: Option<Position>) -> String {
    position.map_or_else(|| "its start".to_owned(), |position| format!("position {position}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(from: Option<u128>, to: Option<u128>) -> String {
        let offset = Offset { position: from.map(Position::new), last_event: None, epoch: 3, lag: None };
        meaning("s of p", Some(&offset), to.map(Position::new), "")
    }

    #[test]
    fn going_back_reads_again_and_going_on_skips() {
        assert!(told(Some(9), None).contains("position 9 to its start"));
        assert!(told(Some(9), None).contains("read again") && told(Some(9), Some(3)).contains("read again"));
        assert!(told(Some(9), Some(12)).contains("skipped") && told(None, Some(0)).contains("skipped"));
        assert!(told(Some(9), Some(9)).contains("where it is"));
        for said in [told(Some(9), None), told(None, Some(1))] {
            assert!(said.contains("fenced"), "{said}");
        }
    }

    #[test]
    fn a_stream_that_nobody_reads_may_be_a_misspelt_one() {
        let said = meaning("s of p", None, None, "events.jsonl");
        assert!(said.contains("Nobody has begun") && said.contains("events.jsonl"), "{said}");
    }

    #[test]
    fn a_position_is_a_number_or_the_start_or_what_redis_writes() {
        assert_eq!(position("start"), Ok(None));
        assert_eq!(position("7"), Ok(Some(Position::new(7))));
        assert_eq!(position("2-3"), Ok(Some(Position::new((2 << 64) + 3))));
        for text in ["", "-1", "end", "1-x", "1.5"] {
            assert!(position(text).expect_err(text).contains("start"), "{text}");
        }
    }
}
