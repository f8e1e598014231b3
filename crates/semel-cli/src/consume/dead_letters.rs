//! Where events go that cannot be processed: a file of JSON lines, or another command.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel::clock::{Clock, SystemClock};
use semel::{Error, ErrorKind};
use semel_stream::source::Pending;
use semel_stream::{DeadLetter, DeadLetters};
use serde_json::{Value, json};

use super::environment::Environment;
use super::exec::{Exec, verdict};
use crate::terminal::moment::rfc3339;

/// A file of dead letters.
pub(super) struct LettersFile {
    file: Arc<Mutex<File>>,
    path: PathBuf,
    pipeline: Box<str>,
}

impl LettersFile {
    /// The file, which is made if it is missing. A line that a crash cut off stays as it is, and the next begins a new one.
    pub(super) fn open(path: &Path, pipeline: &str) -> Result<Self> {
        let opened = || -> io::Result<File> {
            let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
            if file.seek(SeekFrom::End(0))? > 0 {
                let mut last = [0];
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
                if last != *b"\n" {
                    file.write_all(b"\n")?;
                }
            }
            file.sync_all()?;
            // A file whose name is not on the disk is no file after a loss of power.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
            Ok(file)
        };
        let file = opened().with_context(|| {
            format!("cannot append to {}; check the path of --dead-letters and its rights", path.display())
        })?;
        Ok(Self { file: Arc::new(Mutex::new(file)), path: path.to_owned(), pipeline: pipeline.into() })
    }
}

impl DeadLetters for LettersFile {
    fn put_aside(&self, letter: DeadLetter) -> Pending<'_, ()> {
        let line = format!("{}\n", line(&self.pipeline, &letter));
        let file = Arc::clone(&self.file);
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || append(&file, line.as_bytes())).await;
            written.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|error| {
                let message = format!("{}: {error}; make room, or check its rights", self.path.display());
                Error::new(ErrorKind::Unavailable, message).caused_by(error)
            })
        })
    }
}

fn append(file: &Mutex<File>, line: &[u8]) -> io::Result<()> {
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    let before = file.seek(SeekFrom::End(0))?;
    let written = file.write_all(line).and_then(|()| file.sync_data());
    if written.is_err() {
        // The disk may be full in the middle of a line: half of one is of use to nobody.
        let _as_it_was = file.set_len(before);
    }
    written
}

/// All that there is to know of a dead letter.
fn line(pipeline: &str, letter: &DeadLetter) -> Value {
    let event = &letter.event;
    let headers = event.headers.iter().map(|header| json!({ "name": header.name, "value": header.value }));
    let payload = match std::str::from_utf8(&event.payload) {
        Ok(text) => ("payload", json!(text)),
        Err(_) => ("payload_base64", json!(STANDARD.encode(&event.payload))),
    };
    let members = [
        ("at", json!(rfc3339(SystemClock::new().now()))),
        ("pipeline", json!(pipeline)),
        ("stream", json!(&*event.stream)),
        // Text: not every reader of JSON has integers of 128 bits.
        ("position", json!(event.position.map(|position| position.to_string()))),
        ("event_id", json!(event.id)),
        ("key", json!(letter.key)),
        ("attempts", json!(letter.attempts)),
        ("error", json!(letter.error)),
        ("headers", headers.collect()),
        payload,
    ];
    members.into_iter().collect()
}

/// A command for every dead letter.
impl DeadLetters for Exec {
    fn put_aside(&self, letter: DeadLetter) -> Pending<'_, ()> {
        Box::pin(async move {
            let mut environment = Environment::of(&self.pipeline, &letter.event);
            environment.put("SEMEL_KEY", letter.key.as_deref().unwrap_or_default());
            environment.put("SEMEL_ATTEMPTS", &letter.attempts.to_string());
            environment.put("SEMEL_ERROR", &letter.error);
            let input = letter.event.payload.clone();
            let ended = self.run(&environment, input, std::future::pending()).await;
            verdict(ended).map(drop).map_err(|failure| {
                let message = format!("--dead-letter-exec: {failure}; mend it, and it is run again");
                Error::new(ErrorKind::Unavailable, message)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use semel_stream::Event;

    use super::*;

    fn letter(payload: &'static [u8]) -> DeadLetter {
        let event = Event::new("events", "e-1", payload).at(u128::MAX).header("trace", "t");
        DeadLetter { event: Arc::new(event), key: Some("k".into()), attempts: 3, error: "no".to_owned() }
    }

    #[tokio::test]
    async fn a_letter_is_one_line_with_all_that_is_known() {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let path = folder.path().join("dead.jsonl");
        std::fs::write(&path, b"{\"cut\":").expect("is written");
        let letters = LettersFile::open(&path, "orders").expect("opens");
        letters.put_aside(letter(b"a\nb")).await.expect("is put aside");
        letters.put_aside(letter(b"\xff")).await.expect("is put aside");
        let text = std::fs::read_to_string(&path).expect("is there");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, "{\"cut\":"), "{text}");
        let first: Value = serde_json::from_str(lines[1]).expect("is JSON");
        assert_eq!((&first["payload"], &first["attempts"]), (&"a\nb".into(), &3.into()));
        assert_eq!(first["position"], u128::MAX.to_string());
        assert_eq!(first["headers"][0]["name"], "trace");
        let second: Value = serde_json::from_str(lines[2]).expect("is JSON");
        assert_eq!((&second["payload_base64"], &second["payload"]), (&"/w==".into(), &Value::Null));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_before_anything_runs() {
        let error = LettersFile::open(Path::new("/nowhere/dead.jsonl"), "orders").err().expect("is refused");
        assert!(format!("{error:#}").contains("--dead-letters"), "{error:#}");
    }
}
