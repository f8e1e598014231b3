//! The program that `cargo xtask crash consumer` kills: a consumer that dies right after a step that was chosen for it.
//!
//! - [`choice`]: what it is told; [`talk`]: what it says about its store, and hears, before it goes on.
//! - [`steps`]: every step, and the one at which it dies; [`effects`]: what its handlers do.
//! - [`origin`]: where events come from; [`sabotage`]: consumers that do it in the wrong order, which must be found out.

mod choice;
mod effects;
mod origin;
mod sabotage;
mod steps;
mod talk;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use semel::{Lapse, Semel};
use semel_file::FileStore;
use semel_postgres::{Config, PostgresStore};
use semel_stream::source::Source;
use semel_stream::{Backoff, Checkpoint, Consumer, EventKey, Pipeline, Report, Stopper};
use tokio::task::JoinHandle;

use choice::{Cli, Command, Handler, Life, Policy, Sabotage};
use origin::Origin;
use steps::Steps;

pub(crate) type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A run that is not over by then hangs.
const PATIENCE: Duration = Duration::from_mins(1);
/// Short: whoever dies holding one keeps its event from its successor for so long.
const LEASE: Duration = Duration::from_millis(300);
/// How many events are in work at once.
const PARALLEL: usize = 4;
/// How soon to look again for what is busy, or held.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(10), most: Duration::from_millis(100) };
/// How often a broker is asked whether anything is left.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    std::thread::spawn(|| {
        std::thread::sleep(PATIENCE);
        eprintln!("it did not end in {} s", PATIENCE.as_secs());
        std::process::exit(4);
    });
    // One thread: while a step is seen, no other is taken.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(Into::into).and_then(|runtime| match Cli::parse().command {
        Command::Publish { origin, file } => runtime.block_on(Origin::new(&origin).publish(&file)),
        Command::Prepare { url } => runtime.block_on(effects::prepare(&url)),
        Command::Run(life) => runtime.block_on(live(&life)),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}

async fn live(life: &Life) -> Fallible<()> {
    if life.store.starts_with("postgres:") {
        effects::until_alone(&life.store).await?;
    }
    let pipeline = pipeline(life).await?;
    let origin = Origin::new(&life.origin);
    let Some(steps) = talk::told(life, &pipeline, &origin).await? else { return Ok(()) };
    let source = origin.source()?;
    let (stopper, running) = match life.sabotage {
        Some(Sabotage::AcknowledgeFirst) => start(life, pipeline, sabotage::AckFirst(source), &steps)?,
        Some(Sabotage::CommitFirst | Sabotage::Apart) | None => start(life, pipeline, source, &steps)?,
    };
    steps.begin();
    until_over(running, &stopper, &steps, &origin).await
}

async fn pipeline(life: &Life) -> Fallible<Pipeline> {
    let semel = if life.store.starts_with("postgres:") {
        Semel::new(PostgresStore::open(Config::from_url(&life.store)?.swap_connections(1)).await?)
    } else {
        Semel::new(FileStore::open(&life.store)?)
    };
    let lapse = match life.lapse {
        Policy::Rerun => Lapse::Rerun,
        Policy::Hold => Lapse::Hold,
    };
    Ok(Pipeline::builder(&semel, &life.pipeline).lease(LEASE).lapse(lapse).build()?)
}

type Running = JoinHandle<semel::Result<Report>>;

fn start<S: Source + 'static>(
    life: &Life,
    pipeline: Pipeline,
    source: S,
    steps: &Arc<Steps>,
) -> Fallible<(Stopper, Running)> {
    let watch = Arc::clone(steps);
    let consumer = Consumer::new(pipeline, source)
        .key(EventKey::Pointer("/id".into()))
        .parallel(PARALLEL)
        .checkpoint(Checkpoint::EachEvent)
        .attempts_max(u32::MAX)
        .backoff(BACKOFF)
        .watch(watch);
    let (stopper, steps) = (consumer.stopper(), Arc::clone(steps));
    let running = match (life.handler, life.sabotage) {
        (_, Some(Sabotage::CommitFirst)) => {
            tokio::spawn(consumer.run_with(sabotage::CommitFirst::new(life.effects()?, steps)))
        }
        (Handler::Plain, _) => {
            let effects = Arc::new(life.effects()?);
            tokio::spawn(consumer.run(move |event, permit| {
                effects::plain(Arc::clone(&effects), Arc::clone(&steps), event, permit)
            }))
        }
        (Handler::Transaction, Some(Sabotage::Apart)) => {
            tokio::spawn(consumer.run_with(effects::apart(life, steps)))
        }
        (Handler::Transaction, _) => tokio::spawn(consumer.run_with(effects::in_transaction(life, steps))),
    };
    Ok((stopper, running))
}

/// Lets it run until its source ends, or nothing is left that it could do.
async fn until_over(
    mut running: Running,
    stopper: &Stopper,
    steps: &Steps,
    origin: &Origin<'_>,
) -> Fallible<()> {
    let report = tokio::select! {
        ended = &mut running => ended,
        () = idle(steps, origin) => {
            stopper.stop();
            running.await
        }
    };
    report??;
    Ok(())
}

/// Until every event is done, and the broker knows; or those that are not are held, and wait for somebody to look.
async fn idle(steps: &Steps, origin: &Origin<'_>) {
    steps.until_settled().await;
    if steps.is_any_held() {
        return;
    }
    if origin.ends() {
        return std::future::pending().await;
    }
    while !origin.left().await.is_ok_and(|left| left == Some(0)) {
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
