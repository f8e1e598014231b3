//! `semel consume`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use semel::Lapse;
use semel_stream::{Checkpoint, EventKey, OnMissingKey, Order, Position};

use super::Command;
use super::place::Place;
use super::refused::{Meaning, at_least_one, refused};
use super::scope::{Scope, scope};
use crate::consume::{Consume, DeadLettersTo, Exec, SourceAddress};
use crate::terminal::span;

/// Where the source is, for whoever names none on the command line: its URL may hold a password.
const VARIABLE: &str = "SEMEL_SOURCE";
/// More commands than these at once would only wait for each other.
const PARALLEL_MAX: usize = 4_096;

#[derive(Debug, clap::Args)]
pub(super) struct TypedConsume {
    /// Where events come from; `SEMEL_SOURCE` unless said
    ///
    /// `nats://HOST/STREAM?durable=NAME`, `amqp://USER:PASSWORD@HOST/VHOST?queue=NAME`, `redis://HOST/DB?stream=NAME&group=NAME`,
    /// `kafka://BROKERS/TOPIC?group=NAME`, `file:PATH`, `file:PATH?follow`, or `-` for standard input. Of files and standard input,
    /// every line is an event.
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// Under which name receipts and offsets are kept: another name processes everything again
    #[arg(long, value_name = "NAME")]
    pipeline: String,
    /// What to run for each event, with its payload on standard input; goes to `sh -c`
    #[arg(long, value_name = "COMMAND")]
    exec: String,
    /// Whose pipeline it is
    #[arg(long, value_name = "A/B", value_parser = scope)]
    scope: Option<Scope>,
    /// What makes two events the same one: `broker`, `header:NAME`, `metadata:FIELD` or `pointer:/a/b`
    ///
    /// The broker's own id, a header, a field of `metadata` in a JSON payload (or of the payload itself), or a JSON pointer into
    /// the payload. A broker's id does not see that a producer sent an event twice; a key of its own does.
    #[arg(long, value_name = "KEY", default_value = "broker", value_parser = key)]
    key: EventKey,
    /// What becomes of an event without a key
    #[arg(long, value_name = "WHAT", value_enum, default_value = "stop")]
    on_missing_key: TypedMissing,
    /// How many commands run at once
    #[arg(long, value_name = "N", default_value_t = 16)]
    parallel: usize,
    /// Which events are processed one after the other
    #[arg(long, value_name = "ORDER", value_enum, default_value = "any")]
    order: TypedOrder,
    /// After how many attempts an event is put aside
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    attempts_max: u32,
    /// What it means when a consumer dies while it processes an event: the next one processes it again, or a person decides
    #[arg(long, value_name = "WHAT", value_enum, default_value = "rerun")]
    lapse: TypedLapse,
    /// How long a consumer that stopped answering still counts as alive
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = span::parse)]
    lease: Duration,
    /// After how long a command is killed, with all that it started, and tried again; never unless said
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    timeout: Option<Duration>,
    /// When offsets are committed: `each`, `every:N` or a span such as `1s`
    #[arg(long, value_name = "WHEN", default_value = "1s", value_parser = checkpoint)]
    checkpoint: Checkpoint,
    /// Append dead letters to this file, a line of JSON each
    #[arg(long, value_name = "FILE", conflicts_with = "dead_letter_exec")]
    dead_letters: Option<PathBuf>,
    /// Run this for each dead letter, as --exec; `SEMEL_ERROR` and `SEMEL_ATTEMPTS` say why
    #[arg(long, value_name = "COMMAND")]
    dead_letter_exec: Option<String>,
    /// How long receipts are remembered: an event that is delivered again later is processed again
    #[arg(long, value_name = "SPAN", default_value = "7d", value_parser = span::parse)]
    retention: Duration,
    /// End once nothing has come for a while: 3s, or --once=SPAN
    #[arg(long, value_name = "SPAN", num_args = 0..=1, require_equals = true, default_missing_value = "3s", value_parser = span::parse)]
    once: Option<Duration>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TypedMissing {
    /// End, and say so: somebody must look
    Stop,
    /// To the dead letters, and on
    DeadLetter,
    /// Process it as often as it is delivered
    Unprotected,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TypedOrder {
    /// None: whichever comes first
    Any,
    /// Those of one stream
    Stream,
    /// Those of one stream with the same partition key
    PartitionKey,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TypedLapse {
    /// The next one processes it again, and sees it by its attempt
    Rerun,
    /// Nobody processes it before a person has decided
    Hold,
}

impl TypedConsume {
    pub(super) fn meaning(self, place: &Place) -> Meaning<Command> {
        let parallel = at_least_one("--parallel", self.parallel)?.get();
        if parallel > PARALLEL_MAX {
            return Err(refused(&format!("--parallel is {parallel}; {PARALLEL_MAX} at most")));
        }
        for (option, span) in [("--lease", Some(self.lease)), ("--timeout", self.timeout)] {
            if span.is_some_and(|span| span.is_zero()) {
                return Err(refused(&format!("{option} is 0; give at least 1ms")));
            }
        }
        let dead_letters = match (self.dead_letters, self.dead_letter_exec) {
            (Some(file), _) => DeadLettersTo::File(file),
            (None, Some(command)) => DeadLettersTo::Exec(Exec { command, timeout: self.timeout }),
            (None, None) => DeadLettersTo::Receipts,
        };
        Ok(Command::Consume(Box::new(Consume {
            store: place.store()?,
            source: source(self.source.as_deref())?,
            scope: self.scope.unwrap_or_default().0,
            pipeline: self.pipeline,
            exec: Exec { command: self.exec, timeout: self.timeout },
            key: self.key,
            on_missing_key: match self.on_missing_key {
                TypedMissing::Stop => OnMissingKey::Stop,
                TypedMissing::DeadLetter => OnMissingKey::DeadLetter,
                TypedMissing::Unprotected => OnMissingKey::Unprotected,
            },
            parallel,
            order: match self.order {
                TypedOrder::Any => Order::Any,
                TypedOrder::Stream => Order::Stream,
                TypedOrder::PartitionKey => Order::PartitionKey,
            },
            attempts_max: self.attempts_max,
            lapse: match self.lapse {
                TypedLapse::Rerun => Lapse::Rerun,
                TypedLapse::Hold => Lapse::Hold,
            },
            lease: self.lease,
            checkpoint: self.checkpoint,
            dead_letters,
            retention: self.retention,
            idle: self.once,
        })))
    }
}

fn source(typed: Option<&str>) -> Meaning<SourceAddress> {
    let variable = std::env::var(VARIABLE).ok().filter(|url| !url.is_empty());
    let (by, text) = match (typed, variable) {
        (Some(typed), _) => ("--source", typed.to_owned()),
        (None, Some(variable)) => (VARIABLE, variable),
        (None, None) => {
            return Err(refused("where from? Give --source URL, or set SEMEL_SOURCE; `-` is standard input"));
        }
    };
    text.parse().map_err(|error| refused(&format!("{by}: {error}")))
}

fn key(text: &str) -> Result<EventKey, String> {
    let refused = || {
        format!(
            "`{text}` is no key; write broker, header:NAME, metadata:FIELD, or pointer:/a/b with a JSON pointer"
        )
    };
    match text.split_once(':') {
        None if text == "broker" => Ok(EventKey::Broker),
        Some(("header", name)) if !name.is_empty() => Ok(EventKey::Header(name.into())),
        Some(("metadata", field)) if !field.is_empty() => Ok(EventKey::Metadata(field.into())),
        Some(("pointer", pointer)) if pointer.starts_with('/') => Ok(EventKey::Pointer(pointer.into())),
        _ => Err(refused()),
    }
}

fn checkpoint(text: &str) -> Result<Checkpoint, String> {
    let refused = || format!("`{text}` is no checkpoint; write each, every:100, or a span such as 1s");
    match text.split_once(':') {
        None if text == "each" => Ok(Checkpoint::EachEvent),
        None => span::parse(text).map(Checkpoint::Interval).map_err(|_| refused()),
        Some(("every", number)) => {
            number.parse().ok().filter(|number| *number > 0).map(Checkpoint::Every).ok_or_else(refused)
        }
        Some(_) => Err(refused()),
    }
}

/// A position, or `start`; `1700000000000-3` as Redis writes it.
pub(super) fn position(text: &str) -> Result<Option<Position>, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_help_says() {
        for (text, said) in [
            ("broker", "Broker"),
            ("header:Message-Id", "Header(Message-Id)"),
            ("metadata:idempotency_key", "Metadata(idempotency_key)"),
            ("pointer:/order/id", "Pointer(/order/id)"),
        ] {
            assert_eq!(format!("{:?}", key(text).expect("is fine")), said);
        }
        for text in ["", "brokers", "header:", "pointer:a/b", "body:/a"] {
            assert!(key(text).expect_err(text).contains("pointer:/a/b"), "{text}");
        }
    }

    #[test]
    fn a_checkpoint_is_read_as_help_says() {
        assert_eq!(checkpoint("each"), Ok(Checkpoint::EachEvent));
        assert_eq!(checkpoint("every:7"), Ok(Checkpoint::Every(7)));
        assert_eq!(checkpoint("250ms"), Ok(Checkpoint::Interval(Duration::from_millis(250))));
        for text in ["", "every", "every:0", "every:x", "10", "often:3"] {
            assert!(checkpoint(text).expect_err(text).contains("every:100"), "{text}");
        }
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
