//! One run of a command.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};
use tokio::task::JoinHandle;

use super::environment::Environment;
use super::group::Group;
use super::screen::Screen;

/// How much of what a command prints is kept.
pub(super) const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// How much of what it complains of is kept, to say why it failed.
const COMPLAINT_BYTES_MAX: usize = 1 << 10;
/// How long is waited for the rest of its output once it has ended: what it left in the background may hold the pipe open.
const REST: Duration = Duration::from_millis(200);

/// A command for `sh -c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exec {
    pub(crate) command: String,
    /// After which it is killed; `None` to let it take its time.
    pub(crate) timeout: Option<Duration>,
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) how: How,
    /// What it printed, as far as it is kept.
    pub(super) output: Vec<u8>,
    /// How much it printed.
    pub(super) output_bytes: u64,
    /// The last line of what it complained of.
    pub(super) complaint: String,
}

/// How a run ended.
#[derive(Debug)]
pub(super) enum How {
    /// With this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It was killed: it took too long.
    TimedOut(Duration),
    /// It was killed: somebody else may run now.
    Lost,
    /// It never started.
    NotStarted(io::Error),
}

impl Exec {
    /// Runs it, with its input and environment, until it ends, takes too long, or has lost its right to run.
    pub(super) async fn run(
        &self,
        environment: &Environment,
        input: Bytes,
        lost: impl Future<Output = ()>,
        screen: &Screen,
    ) -> Ended {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        environment.give(&mut command);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ended::without_a_run(How::NotStarted(error)),
        };
        let mut group = Group::of(&child);
        let feeding = child.stdin.take().map(|stdin| tokio::spawn(feed(stdin, input)));
        let output = Listening::to(child.stdout.take(), OUTPUT_BYTES_MAX, Keep::First, None);
        let screen = Some(screen.clone());
        let complaints = Listening::to(child.stderr.take(), COMPLAINT_BYTES_MAX, Keep::Last, screen);
        let how = tokio::select! {
            biased;
            status = child.wait() => {
                group.let_go();
                How::of(status)
            }
            () = lost => {
                group.kill();
                let _reaped = child.wait().await;
                How::Lost
            }
            () = after(self.timeout) => {
                group.kill();
                let _reaped = child.wait().await;
                How::TimedOut(self.timeout.unwrap_or_default())
            }
        };
        if let Some(feeding) = feeding {
            feeding.abort();
        }
        let (output, output_bytes) = output.heard().await;
        let (complaint, _) = complaints.heard().await;
        Ended { how, output, output_bytes, complaint: last_line(&complaint) }
    }
}

async fn after(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}

/// A command need not read its input: that it did not is no failure.
async fn feed(mut stdin: ChildStdin, input: Bytes) {
    let _unread = stdin.write_all(&input).await;
    let _unread = stdin.shutdown().await;
}

impl How {
    fn of(status: io::Result<ExitStatus>) -> Self {
        match status {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Self::Exited(code),
                (None, signal) => Self::Signalled(signal.unwrap_or_default()),
            },
            Err(error) => Self::NotStarted(error),
        }
    }
}

impl Ended {
    fn without_a_run(how: How) -> Self {
        Self { how, output: Vec::new(), output_bytes: 0, complaint: String::new() }
    }
}

/// Which part of a long output is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    First,
    Last,
}

/// Listens to a pipe to its end, and keeps a bounded part: a command must never wait for somebody to listen.
struct Listening {
    task: Option<JoinHandle<()>>,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    kept: Vec<u8>,
    bytes: u64,
}

impl Listening {
    fn to(
        pipe: Option<impl AsyncRead + Send + Unpin + 'static>,
        most: usize,
        keep: Keep,
        screen: Option<Screen>,
    ) -> Self {
        let heard = Arc::<Mutex<Heard>>::default();
        let task = pipe.map(|pipe| tokio::spawn(listen(pipe, Arc::clone(&heard), most, keep, screen)));
        Self { task, heard }
    }

    async fn heard(self) -> (Vec<u8>, u64) {
        if let Some(mut task) = self.task
            && tokio::time::timeout(REST, &mut task).await.is_err()
        {
            task.abort();
        }
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut heard.kept), heard.bytes)
    }
}

async fn listen(
    mut pipe: impl AsyncRead + Unpin,
    heard: Arc<Mutex<Heard>>,
    most: usize,
    keep: Keep,
    screen: Option<Screen>,
) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        let bytes = buffer.get(..read).unwrap_or_default();
        heard.lock().unwrap_or_else(PoisonError::into_inner).add(bytes, most, keep);
        if let Some(screen) = &screen {
            screen.pass_on(bytes);
        }
    }
}

impl Heard {
    fn add(&mut self, bytes: &[u8], most: usize, keep: Keep) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        match keep {
            Keep::First => {
                let room = most.saturating_sub(self.kept.len());
                self.kept.extend(bytes.iter().take(room));
            }
            Keep::Last => {
                self.kept.extend(bytes);
                let too_many = self.kept.len().saturating_sub(most);
                self.kept.drain(..too_many);
            }
        }
    }
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use semel_stream::Event;

    use super::*;

    async fn ran(command: &str, timeout: Option<Duration>, input: &[u8]) -> Ended {
        let exec = Exec { command: command.to_owned(), timeout };
        let environment = Environment::of("orders", &Event::new("s", "e-1", "x"));
        let (input, screen) = (Bytes::copy_from_slice(input), Screen::none());
        let run = exec.run(&environment, input, std::future::pending(), &screen);
        tokio::time::timeout(Duration::from_secs(30), run).await.expect("a run ends")
    }

    #[tokio::test]
    async fn a_command_gets_its_input_and_its_output_is_kept() {
        let ended = ran("cat; echo $SEMEL_EVENT_ID; echo a >&2; echo 'why  ' >&2", None, b"in").await;
        assert!(matches!(ended.how, How::Exited(0)), "{ended:?}");
        assert_eq!((&*ended.output, ended.output_bytes), (&b"ine-1\n"[..], 6));
        assert_eq!(ended.complaint, "why");
    }

    #[tokio::test]
    async fn a_command_that_does_not_read_its_input_is_no_failure() {
        let ended = ran("exit 0", None, &vec![b'x'; 4 << 20]).await;
        assert!(matches!(ended.how, How::Exited(0)), "{ended:?}");
    }

    #[tokio::test]
    async fn output_beyond_the_bound_is_counted_and_not_kept() {
        let ended = ran("head -c 300000 /dev/zero", None, b"").await;
        assert!(matches!(ended.how, How::Exited(0)), "{ended:?}");
        assert_eq!((ended.output.len(), ended.output_bytes), (OUTPUT_BYTES_MAX, 300_000));
    }

    #[tokio::test]
    async fn what_takes_too_long_is_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let file = folder.path().join("late");
        let command = format!("(sleep 2; touch {}) & sleep 30", file.display());
        let ended = ran(&command, Some(Duration::from_millis(200)), b"").await;
        assert!(matches!(ended.how, How::TimedOut(_)), "{ended:?}");
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        assert!(!file.exists(), "the one in the background went on");
    }

    #[tokio::test]
    async fn what_has_lost_its_right_is_killed_at_once() {
        let exec = Exec { command: "sleep 30".to_owned(), timeout: None };
        let environment = Environment::of("orders", &Event::new("s", "e-1", "x"));
        let lost = tokio::time::sleep(Duration::from_millis(100));
        let screen = Screen::none();
        let run = exec.run(&environment, Bytes::new(), lost, &screen);
        let ended = tokio::time::timeout(Duration::from_secs(10), run).await.expect("a run ends");
        assert!(matches!(ended.how, How::Lost), "{ended:?}");
    }

    #[tokio::test]
    async fn what_is_left_in_the_background_keeps_nobody_waiting() {
        let ended = ran("sleep 3 & echo done", None, b"").await;
        assert!(matches!(ended.how, How::Exited(0)), "{ended:?}");
        assert_eq!(ended.output, b"done\n");
    }

    #[tokio::test]
    async fn a_run_that_is_dropped_is_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let file = folder.path().join("late");
        let command = format!("sleep 1; touch {}", file.display());
        drop(tokio::time::timeout(Duration::from_millis(200), ran(&command, None, b"")).await);
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(!file.exists(), "it went on");
    }
}
