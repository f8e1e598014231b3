//! Lines on their way to standard output, without holding up anybody.

use std::io::Write as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use semel::{Error, ErrorKind, Result};

use super::form::Form;

/// How many bytes may wait to be written. What comes on top is dropped, and counted.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// How long lines are gathered before they are written together.
const GATHER: Duration = Duration::from_millis(20);

/// How long to wait for the last lines to be written.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Lines on their way to standard output.
pub(crate) struct Log {
    pub(super) form: Form,
    waiting: Arc<Waiting>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

#[derive(Default)]
struct Waiting {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    ended: bool,
}

impl Log {
    /// A log in this form, with a thread of its own that writes it.
    pub(crate) fn new(form: Form) -> Result<Self> {
        let waiting = Arc::new(Waiting::default());
        let theirs = Arc::clone(&waiting);
        let thread = thread::Builder::new().name("semel-access-log".to_owned()).spawn(move || theirs.write());
        let thread = thread.map_err(|error| {
            Error::new(
                ErrorKind::Unavailable,
                format!("no thread for the access log: {error}; raise the limit"),
            )
        })?;
        Ok(Self { form, waiting, thread: Mutex::new(Some(thread)) })
    }

    /// Adds a line, or drops it if whoever reads the log is too slow.
    pub(super) fn add(&self, line: &[u8]) {
        let mut lines = self.waiting.lines();
        if lines.bytes.len().saturating_add(line.len()) > WAITING_BYTES_MAX {
            drop(lines);
            metrics::counter!("semel_http_log_lines_dropped_total").increment(1);
            return;
        }
        let was_empty = lines.bytes.is_empty();
        lines.bytes.extend_from_slice(line);
        drop(lines);
        // Only the first line wakes the writer; it finds the others when it has gathered.
        if was_empty {
            self.waiting.changed.notify_one();
        }
    }
}

impl Log {
    /// Writes the last lines. What comes later is not written any more.
    pub(crate) async fn end(&self) {
        self.say_ended();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Whoever reads the log may have stopped reading: nobody waits for that for ever.
            let written = tokio::task::spawn_blocking(|| drop(thread.join()));
            drop(tokio::time::timeout(END_TIMEOUT, written).await);
        }
    }

    fn say_ended(&self) {
        self.waiting.lines().ended = true;
        self.waiting.changed.notify_one();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.say_ended();
    }
}

impl Waiting {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) {
        let mut gathered = Vec::new();
        loop {
            let ended = self.gather(&mut gathered);
            // Nobody can be told that standard output is gone, and the proxy goes on without it.
            let _ = std::io::stdout().lock().write_all(&gathered);
            gathered.clear();
            if ended {
                return;
            }
        }
    }

    /// Takes what waits, once there is something. Says whether the log has ended.
    fn gather(&self, gathered: &mut Vec<u8>) -> bool {
        let lines = self.lines();
        let idle = |lines: &mut Lines| lines.bytes.is_empty() && !lines.ended;
        let lines = self.changed.wait_while(lines, idle).unwrap_or_else(PoisonError::into_inner);
        let ended = |lines: &mut Lines| !lines.ended;
        let waited = self.changed.wait_timeout_while(lines, GATHER, ended);
        let (mut lines, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(gathered, &mut lines.bytes);
        lines.ended
    }
}
