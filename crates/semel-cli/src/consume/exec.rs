//! One run of a command, with the processes that it starts, and what its end means for its event.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use semel::{Outcome, Permit};
use semel_stream::{Event, Failure, Handled};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;

use super::environment::Environment;
use super::reporter::Screen;
use crate::terminal::{self, span, text};

/// "This data cannot be processed", of `sysexits.h`.
const EX_DATAERR: i32 = 65;
/// "The configuration is wrong", of `sysexits.h`.
const EX_CONFIG: i32 = 78;
/// What a shell ends with if a command cannot be run.
const NOT_RUNNABLE: i32 = 126;
/// What a shell ends with if there is no such command.
const NOT_FOUND: i32 = 127;

/// How much of what a command prints is kept.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// How much of what it complains of is kept, to say why it failed.
const COMPLAINT_BYTES_MAX: usize = 1 << 10;
/// How long is waited for the rest of its output once it has ended: what it left in the background may hold the pipe open.
const REST: Duration = Duration::from_millis(200);

/// What is in `--help`.
pub(crate) const CODES: &str = "How the command ends:\n  \
    0              processed; what it printed (64 KiB at most) is kept in the receipt\n  \
    65             this event will never work: to the dead letters with it, at once\n  \
    75             it may work later: tried again, up to --attempts-max times\n  \
    78, 126, 127   nothing will work before somebody has looked: stops; the event stays unprocessed\n  \
    another code, a signal, or a --timeout: as 75";

/// A command for `sh -c`.
#[derive(Clone, Debug)]
pub(super) struct Exec {
    pub(super) command: String,
    /// After which it is killed; `None` to let it take its time.
    pub(super) timeout: Option<Duration>,
    /// The name of the pipeline whose events it is run for.
    pub(super) pipeline: Box<str>,
    /// Where its complaints are shown.
    pub(super) screen: Screen,
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
    /// Runs it for an event.
    pub(super) async fn handle(&self, event: &Event, permit: &Permit) -> Handled {
        let environment = Environment::of(&self.pipeline, event).under(permit);
        let ended = self.run(&environment, event.payload.clone(), permit.lost()).await;
        if matches!(ended.how, How::Lost) {
            self.screen.line(&format!(
                "{} lost its lease in attempt {}: its command was killed, and another may run by now",
                permit.key().id().short(),
                permit.attempt()
            ));
        }
        verdict(ended)
    }

    /// Runs it, with its input and environment, until it ends, takes too long, or has lost its right to run.
    pub(super) async fn run(
        &self,
        environment: &Environment,
        input: Bytes,
        lost: impl Future<Output = ()>,
    ) -> Ended {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        environment.give(&mut command);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let how = How::NotStarted(error);
                return Ended { how, output: Vec::new(), output_bytes: 0, complaint: String::new() };
            }
        };
        let mut group = Group::of(&child);
        let feeding = child.stdin.take().map(|stdin| tokio::spawn(feed(stdin, input)));
        let output = Listening::to(child.stdout.take(), Keep::First(OUTPUT_BYTES_MAX), None);
        let screen = Some(self.screen.clone());
        let complaints = Listening::to(child.stderr.take(), Keep::Last(COMPLAINT_BYTES_MAX), screen);
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

/// Which part of a long output is kept, and how many bytes of it.
#[derive(Clone, Copy)]
enum Keep {
    First(usize),
    Last(usize),
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
    fn to(pipe: Option<impl AsyncRead + Send + Unpin + 'static>, keep: Keep, screen: Option<Screen>) -> Self {
        let heard = Arc::<Mutex<Heard>>::default();
        let hearing = Arc::clone(&heard);
        let task = pipe.map(|mut pipe| {
            tokio::spawn(async move {
                let mut buffer = vec![0; 8 << 10];
                while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
                    let bytes = buffer.get(..read).unwrap_or_default();
                    hearing.lock().unwrap_or_else(PoisonError::into_inner).add(bytes, keep);
                    if let Some(screen) = &screen {
                        screen.pass_on(bytes);
                    }
                }
            })
        });
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

impl Heard {
    fn add(&mut self, bytes: &[u8], keep: Keep) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        match keep {
            Keep::First(most) => {
                let room = most.saturating_sub(self.kept.len());
                self.kept.extend(bytes.iter().take(room));
            }
            Keep::Last(most) => {
                self.kept.extend(bytes);
                self.kept.drain(..self.kept.len().saturating_sub(most));
            }
        }
    }
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// What the end of a run means for its event.
pub(super) fn verdict(ended: Ended) -> Handled {
    let why = |what: String| {
        if ended.complaint.is_empty() { what } else { format!("{what}: {}", text::shown(&ended.complaint)) }
    };
    match ended.how {
        How::Exited(0) => Ok(outcome(&ended)),
        How::Exited(EX_DATAERR) => Err(Failure::Dead(why("the command ended with code 65".to_owned()))),
        How::Exited(EX_CONFIG) => Err(Failure::Stop(why("the command ended with code 78".to_owned()))),
        How::Exited(code @ (NOT_RUNNABLE | NOT_FOUND)) => {
            Err(Failure::Stop(why(format!("the command cannot be run (code {code}); check --exec"))))
        }
        // 75 of `sysexits.h`, "try again later", is one of many.
        How::Exited(code) => Err(Failure::Retry(why(format!("the command ended with code {code}")))),
        How::Signalled(signal) => Err(Failure::Retry(why(format!("the command died of signal {signal}")))),
        How::TimedOut(timeout) => {
            Err(Failure::Retry(why(format!("the command was killed after {}", span::shown(timeout)))))
        }
        How::Lost => {
            Err(Failure::Retry("the lease was lost while the command ran; it was killed".to_owned()))
        }
        How::NotStarted(error) => Err(not_started(&error)),
    }
}

fn outcome(ended: &Ended) -> Outcome {
    let outcome = Outcome::success(ended.output.clone());
    if ended.output_bytes == ended.output.len() as u64 {
        return outcome;
    }
    outcome.details(&json!({ "printed_bytes": ended.output_bytes, "kept_bytes": ended.output.len() }))
}

fn not_started(error: &io::Error) -> Failure {
    let kind = error.kind();
    if matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) {
        return Failure::Stop(format!("there is no shell to run the command with: {error}; install sh"));
    }
    if kind == io::ErrorKind::ArgumentListTooLong {
        let most = terminal::bytes::size(128 << 10);
        return Failure::Dead(format!(
            "its key or headers are too large for a command ({most} at most): {error}"
        ));
    }
    // Too many processes, or too little memory: that may pass.
    Failure::Retry(format!("the command could not be started: {error}"))
}

/// The processes of a command. Dropped before they are let go, they are killed: nobody would renew their lease, or
/// hear what they say.
struct Group(Option<Pid>);

impl Group {
    /// The group that this child leads.
    fn of(child: &Child) -> Self {
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        Self(number.and_then(Pid::from_raw))
    }

    /// Kills them all.
    fn kill(&mut self) {
        if let Some(leader) = self.0.take() {
            // They may all be gone by now.
            let _gone = kill_process_group(leader, Signal::KILL);
        }
    }

    /// The command has ended by itself. What it left in the background is its own affair.
    fn let_go(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exec(command: &str, timeout: Option<Duration>) -> Exec {
        Exec { command: command.to_owned(), timeout, pipeline: "orders".into(), screen: Screen::new() }
    }

    async fn ran(command: &str, timeout: Option<Duration>, input: &[u8]) -> Ended {
        let exec = exec(command, timeout);
        let environment = Environment::of("orders", &Event::new("s", "e-1", "x"));
        let run = exec.run(&environment, Bytes::copy_from_slice(input), std::future::pending());
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
        let exec = exec("sleep 30", None);
        let environment = Environment::of("orders", &Event::new("s", "e-1", "x"));
        let lost = tokio::time::sleep(Duration::from_millis(100));
        let run = exec.run(&environment, Bytes::new(), lost);
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

    fn of(how: How) -> Handled {
        let complaint = "disk\u{1b}[2J full".to_owned();
        verdict(Ended { how, output: b"ok".to_vec(), output_bytes: 2, complaint })
    }

    #[test]
    fn every_end_has_the_meaning_that_help_says() {
        assert!(of(How::Exited(0)).is_ok_and(|outcome| &**outcome.bytes() == b"ok"));
        for (how, word) in [
            (How::Exited(65), "dead"),
            (How::Exited(75), "retry"),
            (How::Exited(1), "retry"),
            (How::Exited(130), "retry"),
            (How::Exited(78), "stop"),
            (How::Exited(126), "stop"),
            (How::Exited(127), "stop"),
            (How::Signalled(9), "retry"),
            (How::TimedOut(Duration::from_secs(3)), "retry"),
            (How::Lost, "retry"),
            (How::NotStarted(io::ErrorKind::NotFound.into()), "stop"),
            (How::NotStarted(io::ErrorKind::ArgumentListTooLong.into()), "dead"),
            (How::NotStarted(io::ErrorKind::WouldBlock.into()), "retry"),
        ] {
            let told = format!("{how:?}");
            assert_eq!(of(how).expect_err("is a failure").word(), word, "{told}");
        }
    }

    #[test]
    fn a_failure_says_what_the_command_complained_of_and_moves_no_cursor() {
        let failure = of(How::Exited(75)).expect_err("is a failure");
        assert_eq!(failure.reason(), "the command ended with code 75: disk\\u{1b}[2J full");
    }

    #[test]
    fn an_outcome_that_was_cut_says_so() {
        let ended =
            Ended { how: How::Exited(0), output: b"ok".to_vec(), output_bytes: 9, complaint: String::new() };
        let outcome = verdict(ended).expect("went well");
        assert!(outcome.details_json().is_some_and(|details| details.contains("\"printed_bytes\":9")));
    }
}
