//! Messages to and from the browser: JSON, each ended by a zero byte; answers come by number, events by tab.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Longer than anything takes here, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(45);
/// How many events of a tab are kept.
const EVENTS_MAX: usize = 10_000;

/// Both ends of the pipe.
pub(super) struct Wire {
    to: Mutex<ChildStdin>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, SyncSender<Value>>>,
    events: Mutex<HashMap<String, Vec<Event>>>,
}

/// Something that happened in a tab.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) method: String,
    pub(super) params: Value,
}

impl Wire {
    pub(super) fn new(to: ChildStdin, from: ChildStdout) -> Arc<Self> {
        let wire = Arc::new(Self {
            to: Mutex::new(to),
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            events: Mutex::default(),
        });
        let reading = Arc::clone(&wire);
        std::thread::spawn(move || reading.read(BufReader::new(from)));
        wire
    }

    /// Asks for something, in a tab or of the browser itself, and waits for the answer.
    pub(super) fn call(&self, tab: Option<&str>, method: &str, params: &Value) -> Result<Value> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let (Some(tab), Some(members)) = (tab, message.as_object_mut()) {
            members.insert("sessionId".to_owned(), tab.into());
        }
        let (told, answer) = sync_channel(1);
        held(&self.waiting).insert(id, told);
        let sent = {
            let mut to = held(&self.to);
            to.write_all(format!("{message}\0").as_bytes()).and_then(|()| to.flush())
        };
        sent.with_context(|| format!("{method}: the browser is gone"))?;
        let answer = answer.recv_timeout(PATIENCE);
        held(&self.waiting).remove(&id);
        let answer = answer.with_context(|| format!("{method}: the browser did not answer"))?;
        if let Some(error) = answer.get("error") {
            bail!("{method}: {error}");
        }
        Ok(answer.get("result").cloned().unwrap_or_default())
    }

    /// What happened in a tab since it was last asked.
    pub(super) fn take_events(&self, tab: &str) -> Vec<Event> {
        held(&self.events).remove(tab).unwrap_or_default()
    }

    fn read(&self, mut from: BufReader<ChildStdout>) {
        let mut bytes = Vec::new();
        while from.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
            bytes.pop();
            if let Ok(message) = serde_json::from_slice(&bytes) {
                self.told(message);
            }
            bytes.clear();
        }
        // Whoever still waits hears at once that nobody will answer.
        held(&self.waiting).clear();
    }

    fn told(&self, mut message: Value) {
        if let Some(id) = message.get("id").and_then(Value::as_u64) {
            if let Some(told) = held(&self.waiting).remove(&id) {
                let _gone = told.send(message);
            }
            return;
        }
        let word = |name: &str| message.get(name).and_then(Value::as_str).map(str::to_owned);
        let (Some(method), Some(tab)) = (word("method"), word("sessionId")) else { return };
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        let mut events = held(&self.events);
        let events = events.entry(tab).or_default();
        if events.len() < EVENTS_MAX {
            events.push(Event { method, params });
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
