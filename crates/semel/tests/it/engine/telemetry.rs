//! What an application's own recorder and subscriber are told.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key as Name, KeyName, Metadata, Recorder, SharedString, Unit,
};
use semel::{Claim, Key};
use tracing::field::{Field, Visit};
use tracing::span;

use crate::world::{World, granted, outcome};

/// Keeps what it is told, by name and labels.
#[derive(Default)]
struct Notebook {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    histograms: Mutex<BTreeMap<String, Arc<Samples>>>,
}

#[derive(Default)]
struct Samples(AtomicU64);

impl HistogramFn for Samples {
    fn record(&self, _: f64) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn full_name(name: &Name) -> String {
    name.labels()
        .fold(name.name().to_owned(), |text, label| format!("{text} {}={}", label.key(), label.value()))
}

impl Recorder for Notebook {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, name: &Name, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::clone(self.counters.lock().unwrap().entry(full_name(name)).or_default()))
    }

    fn register_gauge(&self, _: &Name, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, name: &Name, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::clone(self.histograms.lock().unwrap().entry(full_name(name)).or_default()))
    }
}

#[test]
fn every_decision_reaches_the_applications_metrics() {
    let notebook = Notebook::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    metrics::with_local_recorder(&notebook, || {
        runtime.block_on(async {
            let world = World::new();
            let key = crate::world::key("1");
            let permit = world.run(&key).await;
            drop(world.semel.claim(Claim::new(&key)).await.unwrap());
            permit.complete(outcome("paid")).await.unwrap();
            drop(world.semel.claim(Claim::new(&key)).await.unwrap());
            permit.complete(outcome("other")).await.unwrap_err();
        });
    });
    let counters = notebook.counters.lock().unwrap();
    let seen: BTreeMap<&str, u64> =
        counters.iter().map(|(name, count)| (name.as_str(), count.load(Ordering::SeqCst))).collect();
    let expected = BTreeMap::from([
        ("semel_decisions_total decision=run", 1),
        ("semel_decisions_total decision=busy", 1),
        ("semel_decisions_total decision=replay", 1),
        ("semel_lost_total", 1),
    ]);
    assert_eq!(seen, expected);
    let histograms = notebook.histograms.lock().unwrap();
    assert_eq!(histograms["semel_claim_seconds"].0.load(Ordering::SeqCst), 3);
    assert_eq!(histograms["semel_settle_seconds"].0.load(Ordering::SeqCst), 2);
}

/// Writes down every span and event, with all their fields.
#[derive(Clone, Default)]
struct Scribe(Arc<Mutex<Vec<String>>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl tracing::Subscriber for Scribe {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("semel")
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut line = attributes.metadata().name().to_owned();
        attributes.record(&mut Line(&mut line));
        self.0.lock().unwrap().push(line);
        span::Id::from_u64(1)
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = String::from("event");
        event.record(&mut Line(&mut line));
        self.0.lock().unwrap().push(line);
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[test]
fn claims_and_settles_are_spans_and_keys_are_digests_in_them() {
    let scribe = Scribe::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let key = Key::scoped(["tenant-secret"], "operation-secret", "name-secret").unwrap();
    tracing::subscriber::with_default(scribe.clone(), || {
        runtime.block_on(async {
            let world = World::new();
            let permit = granted(world.semel.claim(Claim::new(&key)).await.unwrap());
            permit.complete(outcome("bytes-secret")).await.unwrap();
            drop(world.semel.claim(Claim::new(&key)).await.unwrap());
        });
    });
    let lines = scribe.0.lock().unwrap().join("\n");
    let short = key.id().short().to_string();
    assert!(lines.contains(&format!("semel.claim key={short}")), "{lines}");
    assert!(lines.contains("semel.settle what=\"complete\""), "{lines}");
    assert!(lines.contains("decision=\"replay\""), "{lines}");
    assert!(!lines.contains("secret"), "{lines}");
}
