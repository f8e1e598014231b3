//! What colours mean here: red is wrong, yellow waits for a person. Only on a terminal, and not with `NO_COLOR`.

use console::Style;
use semel::clock::Timestamp;
use semel::record::{Record, State};

/// What needs no attention.
pub(crate) fn quiet() -> Style {
    Style::new().dim()
}

/// What the eye should find first.
pub(crate) fn strong() -> Style {
    Style::new().bold()
}

/// What waits for a person.
pub(crate) fn waiting() -> Style {
    Style::new().yellow()
}

/// What is wrong.
pub(crate) fn wrong() -> Style {
    Style::new().red()
}

/// What is as it should be.
pub(crate) fn fine() -> Style {
    Style::new().green()
}

/// How the state of a record looks.
pub(crate) fn of_state(record: &Record, now: Timestamp) -> Style {
    match &record.state {
        State::Running(running) if running.lease_is_good(now) => fine(),
        State::Running(_) => wrong(),
        State::Held(_) => waiting(),
        State::Done(_) | State::Released(_) => quiet(),
    }
}
