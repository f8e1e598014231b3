//! Hears everything that is said through `tracing` in this process, at every level.

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static HEARD: Mutex<String> = Mutex::new(String::new());

/// Writes down what every event and span holds.
struct Listener {
    spans: AtomicU64,
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).expect("is text");
    }
}

fn note(what: &str, visit: impl FnOnce(&mut Line)) {
    let mut line = Line(what.to_owned());
    visit(&mut line);
    let mut heard = HEARD.lock().expect("nobody panicked");
    heard.push_str(&line.0);
    heard.push('\n');
}

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        note(span.metadata().name(), |line| span.record(line));
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        note("recorded", |line| values.record(line));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        note(event.metadata().target(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Listens from now on.
pub(crate) fn listen() {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| {
        let listener = Listener { spans: AtomicU64::new(1) };
        tracing::subscriber::set_global_default(listener).expect("nobody else listens");
    });
}

/// Everything that was heard.
pub(crate) fn heard() -> String {
    HEARD.lock().expect("nobody panicked").clone()
}
