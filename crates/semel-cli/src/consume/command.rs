//! Reads a source, and runs the command for each event, once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::builder::TypedValueParser;
use semel::{Lapse, Semel};
use semel_ops::format::scope;
use semel_stream::source::Source;
use semel_stream::{Checkpoint, Consumer, EventKey, OnMissingKey, Order, Pipeline, Report, Stopper};

use super::dead_letters::LettersFile;
use super::exec::Exec;
use super::progress;
use super::reporter::{Reporter, Screen};
use super::source::SourceAddress;
use crate::args::{Scope, at_most, refused, words};
use crate::service::StopSignals;
use crate::store_arg::StoreArg;
use crate::terminal::{Stopwatch, counted, out, span};

/// How often it is looked whether nothing comes any more.
const LOOK: Duration = Duration::from_millis(100);
/// Where the source is, for whoever names none on the command line: its URL may hold a password.
const VARIABLE: &str = "SEMEL_SOURCE";
/// More commands than these at once would only wait for each other.
const PARALLEL_MAX: usize = 4_096;

#[derive(Debug, clap::Args)]
pub(crate) struct ConsumeArgs {
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
    #[arg(long, value_name = "A/B", value_parser = scope::parse)]
    scope: Option<Scope>,
    /// What makes two events the same one: `broker`, `header:NAME`, `metadata:FIELD` or `pointer:/a/b`
    ///
    /// The broker's own id, a header, a field of `metadata` in a JSON payload (or of the payload itself), or a JSON pointer into
    /// the payload. A broker's id does not see that a producer sent an event twice; a key of its own does.
    #[arg(long, value_name = "KEY", default_value = "broker", value_parser = key)]
    key: EventKey,
    /// What becomes of an event without a key
    #[arg(long, value_name = "WHAT", default_value = "stop", value_parser = on_missing_key())]
    on_missing_key: OnMissingKey,
    /// How many commands run at once
    #[arg(long, value_name = "N", default_value_t = 16)]
    parallel: usize,
    /// Which events are processed one after the other
    #[arg(long, value_name = "ORDER", default_value = "any", value_parser = order())]
    order: Order,
    /// After how many attempts an event is put aside
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    attempts_max: u32,
    /// What it means when a consumer dies while it processes an event: the next one processes it again, or a person decides
    #[arg(long, value_name = "WHAT", default_value = "rerun", value_parser = lapse())]
    lapse: Lapse,
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
    /// How much of a dead letter its receipt keeps, payload and headers together, so that it can be shown and requeued; 0B for none
    #[arg(long, value_name = "SIZE", default_value = "256KiB", value_parser = semel_config::size::parse)]
    dead_letter_bytes_max: u64,
    /// How long receipts are remembered: an event that is delivered again later is processed again
    #[arg(long, value_name = "SPAN", default_value = "7d", value_parser = span::parse)]
    retention: Duration,
    /// End once nothing has come for a while: 3s, or --once=SPAN
    #[arg(long, value_name = "SPAN", num_args = 0..=1, require_equals = true, default_missing_value = "3s", value_parser = span::parse)]
    once: Option<Duration>,
}

fn on_missing_key() -> impl TypedValueParser<Value = OnMissingKey> {
    words([
        ("stop", "End, and say so: somebody must look", OnMissingKey::Stop),
        ("dead-letter", "To the dead letters, and on", OnMissingKey::DeadLetter),
        ("unprotected", "Process it as often as it is delivered", OnMissingKey::Unprotected),
    ])
}

fn order() -> impl TypedValueParser<Value = Order> {
    words([
        ("any", "None: whichever comes first", Order::Any),
        ("stream", "Those of one stream", Order::Stream),
        ("partition-key", "Those of one stream with the same partition key", Order::PartitionKey),
    ])
}

fn lapse() -> impl TypedValueParser<Value = Lapse> {
    words([
        ("rerun", "The next one processes it again, and sees it by its attempt", Lapse::Rerun),
        ("hold", "Nobody processes it before a person has decided", Lapse::Hold),
    ])
}

fn source(typed: Option<&str>) -> Result<SourceAddress, clap::Error> {
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

impl ConsumeArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let parallel = at_most("--parallel", self.parallel, PARALLEL_MAX)?.get();
        for (option, span) in [("--lease", Some(self.lease)), ("--timeout", self.timeout)] {
            if span.is_some_and(|span| span.is_zero()) {
                return Err(refused(&format!("{option} is 0; give at least 1ms")).into());
            }
        }
        let (address, source) = (store.address_of_store()?, source(self.source.as_deref())?);
        let mut signals = StopSignals::new().context("signals cannot be listened for")?;
        let screen = Screen::new();
        let store = store.open().await?;
        let semel = Semel::builder_shared(store.store()).build()?;
        let pipeline = self.pipeline(&semel)?;
        let consumer = self.consumer(&pipeline, source.open(parallel).await?, parallel, &screen)?;
        let (stopper, watch) = (consumer.stopper(), Stopwatch::start());
        let _wake_ups = store.wake_ups(&semel);
        let (name, survives) = (&self.pipeline, store.survives());
        screen.line(&format!("{name} reads {source}; receipts in {address} survive {survives}"));
        let exec = Arc::new(self.exec(&self.exec, &screen));
        let running = consumer.run(move |event, permit| {
            let exec = Arc::clone(&exec);
            async move { exec.handle(&event, &permit).await }
        });
        let ended = tokio::select! {
            ended = running => Some(ended),
            () = stop_in_order(&mut signals, &stopper, &screen) => None,
            () = show(&stopper, &screen) => None,
            () = stop_when_idle(&stopper, self.once) => None,
        };
        screen.clear();
        let account = progress::account(&source, name, &stopper.report(), watch.elapsed());
        let Some(ended) = ended else {
            bail!(
                "stopped at once. What ran was killed, and its lease decides when it runs again\n{account}"
            );
        };
        semel.close().await.context("duplicates could not be counted")?;
        out::line(&account)?;
        ended?;
        Ok(())
    }

    fn pipeline(&self, semel: &Semel) -> semel::Result<Pipeline> {
        Pipeline::builder(semel, &self.pipeline)
            .scope(self.scope.as_deref().unwrap_or_default())
            .retention(self.retention)
            .lease(self.lease)
            .lapse(self.lapse)
            .build()
    }

    fn consumer(
        &self,
        pipeline: &Pipeline,
        source: Box<dyn Source>,
        parallel: usize,
        screen: &Screen,
    ) -> Result<Consumer<Box<dyn Source>>> {
        let consumer = Consumer::new(pipeline.clone(), source)
            .key(self.key.clone())
            .on_missing_key(self.on_missing_key)
            .parallel(parallel)
            .order(self.order.clone())
            .checkpoint(self.checkpoint)
            .attempts_max(self.attempts_max)
            .dead_letter_bytes_max(usize::try_from(self.dead_letter_bytes_max).unwrap_or(usize::MAX))
            .watch(Arc::new(Reporter::new(pipeline, screen)));
        Ok(match (&self.dead_letters, &self.dead_letter_exec) {
            (Some(path), _) => consumer.dead_letters(LettersFile::open(path, &self.pipeline)?),
            (None, Some(command)) => consumer.dead_letters(self.exec(command, screen)),
            (None, None) => {
                if self.dead_letter_bytes_max == 0 {
                    screen.line(
                        "warning: the payloads of dead letters are kept nowhere, and cannot be requeued: give \
                         --dead-letters, --dead-letter-exec, or --dead-letter-bytes-max above 0B",
                    );
                }
                consumer
            }
        })
    }

    fn exec(&self, command: &str, screen: &Screen) -> Exec {
        let (timeout, pipeline) = (self.timeout, self.pipeline.as_str().into());
        Exec { command: command.to_owned(), timeout, pipeline, screen: screen.clone() }
    }
}

/// Shows how things stand, for ever.
async fn show(stopper: &Stopper, screen: &Screen) {
    let (mut before, mut at) = (Report::default(), Stopwatch::start());
    loop {
        tokio::time::sleep(screen.pace()).await;
        let report = stopper.report();
        screen.show(&progress::line(&report, progress::rate(&before, &report, at.elapsed())));
        // A rate over less than a second jumps about.
        if at.elapsed() >= Duration::from_secs(1) {
            (before, at) = (report, Stopwatch::start());
        }
    }
}

/// Ends everything in order once nothing has come for so long, and nothing is in work.
async fn stop_when_idle(stopper: &Stopper, idle: Option<Duration>) {
    let (mut delivered, mut since) = (0, Stopwatch::start());
    loop {
        tokio::time::sleep(LOOK).await;
        let report = stopper.report();
        if report.delivered != delivered || progress::in_work(&report) > 0 {
            (delivered, since) = (report.delivered, Stopwatch::start());
        } else if idle.is_some_and(|idle| since.elapsed() >= idle) {
            stopper.stop();
        }
    }
}

/// Has the consumer end in order at the first signal, and returns at the second: whoever says so twice means it.
async fn stop_in_order(signals: &mut StopSignals, stopper: &Stopper, screen: &Screen) {
    signals.next().await;
    let open = counted(progress::in_work(&stopper.report()), "event");
    screen.line(&format!("stopping; {open} in work may finish, nothing new is begun"));
    stopper.stop();
    signals.next().await;
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
}
