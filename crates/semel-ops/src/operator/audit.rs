//! Every action of an operator, written down before it is done, in the program's own log or in a file.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use semel::clock::{Clock as _, SystemClock};
use semel::record::StateKind;
use semel::{Error, ErrorKind, Key, Result};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::format::moment::rfc3339;

/// How many lines may wait for the disk at once: more operators than that do not act at the same moment.
const WAITING_MAX: usize = 1_024;
/// How much of a reason is kept.
const REASON_BYTES_MAX: usize = 4_096;
/// Only the account that runs semel reads and writes it: it holds keys and reasons.
const MODE: u32 = 0o600;

/// Where actions are written down.
pub struct Audit {
    to: To,
}

enum To {
    Log,
    File(Arc<AuditFile>),
}

/// What an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Takes a run away, or lets a held record run again.
    Release,
    /// Settles a held record with an outcome.
    Complete,
    /// Notes an event as processed that was not.
    RecordEvent,
    /// Moves the offset of a stream.
    MoveOffset,
    /// Sends a dead letter back.
    Requeue,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Noted {
    /// It is about to be done.
    Asked,
    /// It was done.
    Done,
    /// The record had changed; nothing was done.
    Refused,
    /// The store did not answer: it may have been done.
    Unknown,
}

/// One line of the log.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Who acts: the name of the token, or of the account.
    pub caller: &'a str,
    /// What is done.
    pub action: Action,
    /// To what.
    pub key: &'a Key,
    /// The state that the operator saw; `None` if there was no record.
    pub seen: Option<StateKind>,
    /// Why, in the operator's words.
    pub reason: &'a str,
    /// How far it got.
    pub result: Noted,
}

/// A line as it is written. JSON escapes whatever is in a name or a reason, so that no value can write a second line.
#[derive(Serialize)]
struct Line<'a> {
    moment: String,
    caller: &'a str,
    action: Action,
    id: String,
    scope: Vec<&'a str>,
    operation: &'a str,
    name: &'a str,
    seen: Option<&'static str>,
    reason: &'a str,
    result: Noted,
}

impl Audit {
    /// To the program's own log only.
    pub fn to_log() -> Self {
        Self::writing_to(To::Log)
    }

    /// To this file, a line of JSON each; it is made if it is missing, and only ever appended to. It may be moved away at
    /// any time: the next line is written to a new one.
    pub fn to_file(path: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self::writing_to(To::File(Arc::new(AuditFile::open(path.into())?))))
    }

    /// To this file, or to the program's own log where there is none.
    pub fn to(file: Option<PathBuf>) -> Result<Self> {
        file.map_or_else(|| Ok(Self::to_log()), Self::to_file)
    }

    fn writing_to(to: To) -> Self {
        Self { to }
    }

    /// Writes a line. What cannot be written down must not be done: an error here refuses the action.
    pub async fn note(&self, entry: Entry<'_>) -> Result<()> {
        let line = Self::line(&entry)?;
        let To::File(file) = &self.to else {
            tracing::info!(target: "semel::audit", "{line}");
            return Ok(());
        };
        // A caller that gives up waiting does not stop the line from being written: it was asked, and that is what it says.
        match AuditFile::append(file, line)?.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(unavailable(&why)),
            Err(error) => Err(unavailable("its writer ended").caused_by(error)),
        }
    }

    fn line(entry: &Entry<'_>) -> Result<String> {
        let line = Line {
            // The wall clock as it is set now: people compare these lines with others.
            moment: rfc3339(SystemClock::new().now()),
            caller: entry.caller,
            action: entry.action,
            id: entry.key.id().to_string(),
            scope: entry.key.scope().collect(),
            operation: entry.key.operation(),
            name: entry.key.name(),
            seen: entry.seen.map(StateKind::as_str),
            reason: cut(entry.reason),
            result: entry.result,
        };
        serde_json::to_string(&line).map_err(|error| unavailable("a line cannot be made").caused_by(error))
    }
}

fn cut(reason: &str) -> &str {
    reason.get(..reason.floor_char_boundary(REASON_BYTES_MAX)).unwrap_or(reason)
}

fn unavailable(why: &str) -> Error {
    let message =
        format!("the audit log cannot be written: {why}; nothing was done. Mend it, then try again");
    Error::new(ErrorKind::Unavailable, message)
}

impl Default for Audit {
    fn default() -> Self {
        Self::to_log()
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.to {
            To::Log => f.write_str("Audit(log)"),
            To::File(file) => write!(f, "Audit({})", file.path.display()),
        }
    }
}

/// A file of lines that survive what the disk survives. It is opened for each batch of lines: so it may be moved away, and a
/// new one begun, at any time.
#[derive(Debug)]
struct AuditFile {
    path: PathBuf,
    waiting: Mutex<Waiting>,
}

/// Lines that wait for the disk. All that wait when a write ends are written and synced together.
#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<(String, oneshot::Sender<Written>)>,
    is_writing: bool,
}

/// Whether a line is on the disk, or why not.
type Written = std::result::Result<(), String>;

impl AuditFile {
    /// The file, which is tried at once: what cannot be written is found before anything is done.
    fn open(path: PathBuf) -> Result<Self> {
        let file = Self { path, waiting: Mutex::default() };
        file.write("").map_err(|error| {
            let message = format!("the audit log {} cannot be written: {error}", file.path.display());
            Error::new(ErrorKind::Invalid, message).caused_by(error)
        })?;
        Ok(file)
    }

    /// Appends a line; the answer comes when it is on the disk.
    fn append(file: &Arc<Self>, line: String) -> Result<oneshot::Receiver<Written>> {
        let (written, answer) = oneshot::channel();
        let mut waiting = file.waiting();
        if waiting.lines.len() >= WAITING_MAX {
            return Err(unavailable("too many lines wait for its disk"));
        }
        waiting.lines.push((line, written));
        if !waiting.is_writing {
            waiting.is_writing = true;
            let file = Arc::clone(file);
            tokio::task::spawn_blocking(move || file.write_all_waiting());
        }
        Ok(answer)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines that wait; none if there is nothing left to write, and the next line starts a writer.
    fn take_waiting(&self) -> Vec<(String, oneshot::Sender<Written>)> {
        let mut waiting = self.waiting();
        let lines = std::mem::take(&mut waiting.lines);
        waiting.is_writing = !lines.is_empty();
        lines
    }

    fn write_all_waiting(&self) {
        loop {
            let lines = self.take_waiting();
            if lines.is_empty() {
                return;
            }
            let text: String = lines.iter().flat_map(|(line, _)| [line.as_str(), "\n"]).collect();
            let written = self.write(&text).map_err(|error| error.to_string());
            for (_, waiting) in lines {
                // A caller that went away needs no answer.
                let _ = waiting.send(written.clone());
            }
        }
    }

    /// Writes whole lines, and waits until they are on the disk.
    fn write(&self, lines: &str) -> io::Result<()> {
        let is_new = !self.path.exists();
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(MODE).open(&self.path)?;
        if is_new {
            self.sync_folder()?;
        }
        let mut text = String::with_capacity(lines.len().saturating_add(1));
        if is_torn(&mut file)? {
            text.push('\n');
        }
        text.push_str(lines);
        // One write: another process that appends does not come in between.
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }

    /// A new file is there after a crash only if its folder says so.
    fn sync_folder(&self) -> io::Result<()> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
    }
}

/// Whether the last line was cut off: by a crash, or a disk that was full.
fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn entry<'a>(key: &'a Key, reason: &'a str) -> Entry<'a> {
        let (seen, result) = (Some(StateKind::Held), Noted::Asked);
        Entry { caller: "ann", action: Action::Release, key, seen, reason, result }
    }

    #[tokio::test]
    async fn each_action_is_one_line_whatever_is_in_its_words() {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::to_file(&path).expect("opens");
        let key = Key::scoped(["acme", "eu"], "charge", "order \u{2028} 1").expect("is a key");
        let reason = "it\nhangs\"}\n{\"caller\":\"bob\"";
        audit.note(entry(&key, reason)).await.expect("is written");
        audit.note(entry(&key, &"ü".repeat(9_000))).await.expect("is written");
        let text = std::fs::read_to_string(&path).expect("is there");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[0]["reason"], reason);
        assert_eq!(lines[0]["scope"], serde_json::json!(["acme", "eu"]));
        assert_eq!((&lines[0]["action"], &lines[0]["seen"]), (&"release".into(), &"held".into()));
        assert_eq!(lines[0]["id"], key.id().to_string());
        assert_eq!(lines[1]["reason"].as_str().map(str::len), Some(REASON_BYTES_MAX));
    }

    #[tokio::test]
    async fn a_file_that_was_moved_away_is_made_again_and_a_torn_line_is_ended() {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let path = folder.path().join("audit.jsonl");
        let (audit, key) = (Audit::to_file(&path).expect("opens"), Key::new("o", "n").expect("is a key"));
        std::fs::rename(&path, folder.path().join("audit.jsonl.1")).expect("is moved");
        audit.note(entry(&key, "one")).await.expect("is written");
        std::fs::write(&path, "{\"moment\":\"20").expect("is torn");
        audit.note(entry(&key, "two")).await.expect("is written");
        let text = std::fs::read_to_string(&path).expect("is there");
        assert!(text.starts_with("{\"moment\":\"20\n{") && text.ends_with("}\n"), "{text}");
    }

    #[tokio::test]
    async fn what_cannot_be_written_down_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder for a test");
        assert!(Audit::to_file(folder.path().join("no/such/folder")).is_err());
        let path = folder.path().join("audit.jsonl");
        let (audit, key) = (Audit::to_file(&path).expect("opens"), Key::new("o", "n").expect("is a key"));
        std::fs::remove_file(&path).expect("is removed");
        std::fs::create_dir(&path).expect("is in the way");
        let error = audit.note(entry(&key, "why")).await.expect_err("cannot be written");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("nothing was done"), "{error}");
    }
}
