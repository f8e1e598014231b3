//! Effects that are counted, and consumers that have them.

use std::collections::BTreeMap;
use std::future::{Future, Ready, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Outcome, Permit, Result, Semel};
use semel_stream::source::Source;
use semel_stream::{
    Backoff, Checkpoint, Consumer, Event, EventKey, Handled, OnMissingKey, Pipeline, Report, Stopper,
};
use tokio::task::JoinHandle;

use crate::ask::{PATIENCE, eventually};

/// How often each event had its effect, by what it says.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<BTreeMap<String, u32>>>);

impl Effects {
    /// A handler that has the effect.
    pub fn handler(&self) -> impl Fn(Arc<Event>, Permit) -> Ready<Handled> + Send + Sync + use<> {
        let effects = self.clone();
        move |event, _| {
            let said = String::from_utf8_lossy(&event.payload).into_owned();
            *effects.0.lock().unwrap().entry(said).or_default() += 1;
            ready(Ok(Outcome::success("done")))
        }
    }

    /// How many events had one.
    pub fn events(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// So many events had one, and none had two.
    pub fn assert_once(&self, events: usize) {
        let effects = self.0.lock().unwrap();
        assert_eq!(effects.len(), events);
        assert!(effects.values().all(|times| *times == 1), "{effects:?}");
    }

    /// How often the most repeated one was had.
    pub fn most(&self) -> u32 {
        self.0.lock().unwrap().values().copied().max().unwrap_or_default()
    }
}

/// A pipeline whose store outlives its consumers.
pub fn pipeline() -> Pipeline {
    Pipeline::new(&Semel::new(MemoryStore::new()), "billing").unwrap()
}

/// Commits at once and tries again soon.
pub fn consumer<S: Source>(pipeline: &Pipeline, source: S) -> Consumer<S> {
    let backoff = Backoff { first: Duration::from_millis(20), most: Duration::from_millis(200) };
    Consumer::new(pipeline.clone(), source).checkpoint(Checkpoint::EachEvent).backoff(backoff)
}

/// The same without protection: what the tests would see if nothing were remembered.
pub fn unprotected<S: Source>(pipeline: &Pipeline, source: S) -> Consumer<S> {
    let nothing = EventKey::Function(Arc::new(|_| None));
    consumer(pipeline, source).key(nothing).on_missing_key(OnMissingKey::Unprotected)
}

/// The number that an event bears: two with the same one are the same event.
pub fn by_number() -> EventKey {
    EventKey::Pointer("/n".into())
}

/// A consumer that runs beside the test.
pub struct Run {
    /// Stops it.
    pub stopper: Stopper,
    task: JoinHandle<Result<Report>>,
}

/// Runs a consumer beside the test.
pub fn run<S: Source + 'static>(consumer: Consumer<S>, effects: &Effects) -> Run {
    Run { stopper: consumer.stopper(), task: tokio::spawn(consumer.run(effects.handler())) }
}

impl Run {
    /// Waits until it has come so far.
    pub async fn until(&self, is_there: impl Fn(&Report) -> bool) {
        eventually(async || is_there(&self.stopper.report())).await;
    }

    /// How it ended by itself.
    pub async fn end(self) -> Result<Report> {
        within(self.task).await.unwrap()
    }

    /// Stops it in order.
    pub async fn stop(self) -> Report {
        self.stopper.stop();
        within(self.task).await.unwrap().unwrap()
    }

    /// Ends it as a crash would.
    pub async fn crash(self) {
        self.task.abort();
        assert!(within(self.task).await.unwrap_err().is_cancelled());
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it did not end")
}
