//! What the end of a command means for its event.

use std::io;

use semel::Outcome;
use semel_stream::{Failure, Handled};
use serde_json::json;

use super::exec::{Ended, How};
use crate::terminal::{bytes, span, text};

/// "This data cannot be processed", of `sysexits.h`.
const EX_DATAERR: i32 = 65;
/// "Try again later", of `sysexits.h`.
const EX_TEMPFAIL: i32 = 75;
/// "The configuration is wrong", of `sysexits.h`.
const EX_CONFIG: i32 = 78;
/// What a shell ends with if a command cannot be run.
const NOT_RUNNABLE: i32 = 126;
/// What a shell ends with if there is no such command.
const NOT_FOUND: i32 = 127;

/// What is in `--help`.
pub(crate) const CODES: &str = "How the command ends:\n  \
    0              processed; what it printed (64 KiB at most) is kept in the receipt\n  \
    65             this event will never work: to the dead letters with it, at once\n  \
    75             it may work later: tried again, up to --attempts-max times\n  \
    78, 126, 127   nothing will work before somebody has looked: stops; the event stays unprocessed\n  \
    another code, a signal, or a --timeout: as 75";

/// What the end of a run means for its event.
pub(super) fn verdict(ended: Ended) -> Handled {
    let why = |what: String| {
        if ended.complaint.is_empty() { what } else { format!("{what}: {}", text::shown(&ended.complaint)) }
    };
    match ended.how {
        How::Exited(0) => Ok(outcome(&ended)),
        How::Exited(EX_DATAERR) => Err(Failure::Dead(why("the command ended with code 65".to_owned()))),
        How::Exited(EX_TEMPFAIL) => Err(Failure::Retry(why("the command ended with code 75".to_owned()))),
        How::Exited(EX_CONFIG) => Err(Failure::Stop(why("the command ended with code 78".to_owned()))),
        How::Exited(code @ (NOT_RUNNABLE | NOT_FOUND)) => {
            Err(Failure::Stop(why(format!("the command cannot be run (code {code}); check --exec"))))
        }
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
        let most = bytes::size(128 << 10);
        return Failure::Dead(format!(
            "its key or headers are too large for a command ({most} at most): {error}"
        ));
    }
    // Too many processes, or too little memory: that may pass.
    Failure::Retry(format!("the command could not be started: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
