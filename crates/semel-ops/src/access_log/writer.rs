//! Lines of the access log on their way to standard output.

use std::io::Write as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use semel::clock::{Clock as _, SystemClock};
use semel::{Error, ErrorKind, Result};

use super::{AccessLine, AccessLog};

/// How many bytes may wait to be written. What comes on top is dropped, and counted.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// How long lines are gathered before they are written together.
const GATHER: Duration = Duration::from_millis(20);
/// How long to wait for the last lines to be written.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// How lines are written.
#[derive(Clone, Copy, Debug)]
enum Form {
    Text,
    Json,
}

/// Lines on their way to standard output.
pub struct AccessLogWriter {
    form: Form,
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

impl AccessLogWriter {
    /// A log of this kind, with a thread of its own that writes it; `None` if nothing is to be written.
    pub fn start(access_log: AccessLog) -> Result<Option<Self>> {
        let form = match access_log {
            AccessLog::Off => return Ok(None),
            AccessLog::Text => Form::Text,
            AccessLog::Json => Form::Json,
        };
        let waiting = Arc::new(Waiting::default());
        let theirs = Arc::clone(&waiting);
        let thread = thread::Builder::new().name("semel-access-log".to_owned()).spawn(move || theirs.write());
        let thread = thread.map_err(|error| {
            Error::new(
                ErrorKind::Unavailable,
                format!("no thread for the access log: {error}; raise the limit"),
            )
        })?;
        Ok(Some(Self { form, waiting, thread: Mutex::new(Some(thread)) }))
    }

    /// Writes a line, with the wall clock as it is set now: people compare these lines with others.
    pub fn write(&self, line: &AccessLine<'_>) {
        let now = SystemClock::new().now();
        match self.form {
            Form::Text => self.add(&line.text(now)),
            Form::Json => self.add(&line.json(now)),
        }
    }

    /// Adds a line, or drops it if the log is read too slowly.
    fn add(&self, line: &[u8]) {
        let mut lines = self.waiting.lines();
        if lines.bytes.len().saturating_add(line.len()) > WAITING_BYTES_MAX {
            drop(lines);
            metrics::counter!(semel::metrics::LOG_LINES_DROPPED.name).increment(1);
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

    /// Writes the last lines. What comes later is not written any more.
    pub async fn end(&self) {
        self.say_ended();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // The reader of the log may have stopped reading: that is not waited for.
            let written = tokio::task::spawn_blocking(|| drop(thread.join()));
            drop(tokio::time::timeout(END_TIMEOUT, written).await);
        }
    }

    fn say_ended(&self) {
        self.waiting.lines().ended = true;
        self.waiting.changed.notify_one();
    }
}

impl Drop for AccessLogWriter {
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
            // Without standard output there is no place to say so, and the process goes on.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_slow_reader_leaves_no_room_for_are_dropped_whole() {
        let waiting = Arc::new(Waiting::default());
        let log =
            AccessLogWriter { form: Form::Text, waiting: Arc::clone(&waiting), thread: Mutex::new(None) };
        let line = [b'x'; 1_000];
        for _ in 0..WAITING_BYTES_MAX / line.len() + 10 {
            log.add(&line);
        }
        let length = waiting.lines().bytes.len();
        assert!(length <= WAITING_BYTES_MAX && length.is_multiple_of(line.len()), "{length}");
        let mut gathered = Vec::new();
        assert!(!waiting.gather(&mut gathered), "it goes on");
        assert_eq!((gathered.len(), waiting.lines().bytes.len()), (length, 0));
        log.add(b"last\n");
        log.say_ended();
        gathered.clear();
        assert!(waiting.gather(&mut gathered), "it has ended");
        assert_eq!(gathered, b"last\n");
    }
}
