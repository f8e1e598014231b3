//! Reads a source, and runs the command for each event, once.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use semel::{Permit, Semel};
use semel_stream::source::Source;
use semel_stream::{Consumer, Event, Handled, Pipeline, Report, Stopper};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::dead_letters::{DeadLettersTo, LettersExec, LettersFile};
use super::environment::Environment;
use super::exec::{Exec, How};
use super::plan::Consume;
use super::screen::Screen;
use super::source;
use super::standing;
use super::told::Told;
use super::verdict::verdict;
use crate::opening;
use crate::terminal::number::counted;
use crate::terminal::out;
use crate::terminal::stopwatch::Stopwatch;

/// How often it is looked whether nothing comes any more.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) async fn run(plan: &Consume) -> Result<()> {
    let mut signals = Signals::new().context("signals cannot be listened for")?;
    let screen = Screen::new();
    let store = opening::open(&plan.store).await?;
    let semel = Semel::builder_shared(store.store()).build()?;
    let pipeline = plan.pipeline(&semel)?;
    let source = source::open(&plan.source, plan.parallel).await?;
    let consumer = consumer(plan, &pipeline, source, &screen)?;
    let (stopper, watch) = (consumer.stopper(), Stopwatch::start());
    let _wake_ups = store.wake_ups(&semel);
    let sweeper = semel.sweeper().start();
    screen.line(&format!(
        "{} reads {}; receipts in {} survive {}",
        plan.pipeline,
        plan.source,
        plan.store,
        store.survives()
    ));
    let runner = Arc::new(Runner { exec: plan.exec.clone(), pipeline, screen: screen.clone() });
    let running = consumer.run(move |event, permit| {
        let runner = Arc::clone(&runner);
        async move { runner.handle(&event, &permit).await }
    });
    let ended = tokio::select! {
        ended = running => Some(ended),
        () = signals.stop_in_order(&stopper, &screen) => None,
        () = show(&stopper, &screen) => None,
        () = stop_when_idle(&stopper, plan.idle) => None,
    };
    screen.clear();
    sweeper.stop().await;
    let account = standing::account(&plan.source, &plan.pipeline, &stopper.report(), watch.elapsed());
    let Some(ended) = ended else {
        bail!("stopped at once. What ran was killed, and its lease decides when it runs again\n{account}");
    };
    semel.flush().await.context("duplicates could not be counted")?;
    out::line(&account)?;
    ended?;
    Ok(())
}

fn consumer(
    plan: &Consume,
    pipeline: &Pipeline,
    source: Box<dyn Source>,
    screen: &Screen,
) -> Result<Consumer<Box<dyn Source>>> {
    let consumer = Consumer::new(pipeline.clone(), source)
        .key(plan.key.clone())
        .on_missing_key(plan.on_missing_key)
        .parallel(plan.parallel)
        .order(plan.order.clone())
        .checkpoint(plan.checkpoint)
        .attempts_max(plan.attempts_max)
        .watch(Arc::new(Told::new(pipeline, screen)));
    Ok(match &plan.dead_letters {
        DeadLettersTo::Receipts => consumer,
        DeadLettersTo::File(path) => consumer.dead_letters(LettersFile::open(path, &plan.pipeline)?),
        DeadLettersTo::Exec(exec) => consumer.dead_letters(LettersExec {
            exec: exec.clone(),
            pipeline: plan.pipeline.as_str().into(),
            screen: screen.clone(),
        }),
    })
}

/// Runs the command for an event.
struct Runner {
    exec: Exec,
    pipeline: Pipeline,
    screen: Screen,
}

impl Runner {
    async fn handle(&self, event: &Event, permit: &Permit) -> Handled {
        let environment = Environment::of(self.pipeline.name(), event).under(permit);
        let ended = self.exec.run(&environment, event.payload.clone(), permit.lost(), &self.screen).await;
        if matches!(ended.how, How::Lost) {
            self.screen.line(&format!(
                "{} lost its lease in attempt {}: its command was killed, and another may run by now",
                permit.key().id().short(),
                permit.attempt()
            ));
        }
        verdict(ended)
    }
}

/// Shows how things stand, for ever.
async fn show(stopper: &Stopper, screen: &Screen) {
    let (mut before, mut at) = (Report::default(), Stopwatch::start());
    loop {
        tokio::time::sleep(screen.pace()).await;
        let report = stopper.report();
        screen.show(&standing::line(&report, standing::rate(&before, &report, at.elapsed())));
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
        if report.delivered != delivered || standing::in_work(&report) > 0 {
            (delivered, since) = (report.delivered, Stopwatch::start());
        } else if idle.is_some_and(|idle| since.elapsed() >= idle) {
            stopper.stop();
        }
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Has the consumer end in order at the first signal, and returns at the second: whoever says so twice means it.
    async fn stop_in_order(&mut self, stopper: &Stopper, screen: &Screen) {
        self.next().await;
        let open = counted(standing::in_work(&stopper.report()), "event");
        screen.line(&format!("stopping; {open} in work may finish, nothing new is begun"));
        stopper.stop();
        self.next().await;
    }
}
