//! What a command finds in its environment.

use semel::Permit;
use semel_stream::{Event, EventId};
use tokio::process::Command;

/// How the names of headers begin.
const HEADER: &str = "SEMEL_HEADER_";
/// All others.
const NAMES: [&str; 10] = [
    "SEMEL_KEY",
    "SEMEL_ATTEMPT",
    "SEMEL_FENCE",
    "SEMEL_PIPELINE",
    "SEMEL_STREAM",
    "SEMEL_POSITION",
    "SEMEL_EVENT_ID",
    "SEMEL_DERIVED_KEY",
    "SEMEL_ATTEMPTS",
    "SEMEL_ERROR",
];
/// What is in `--help`.
pub(crate) const ENVIRONMENT: &str = "What the command finds in its environment:\n  \
    SEMEL_KEY, SEMEL_EVENT_ID         what makes the event the same one, and the broker's own id of it\n  \
    SEMEL_ATTEMPT                     1 the first time; beyond that, an earlier run may have left effects behind\n  \
    SEMEL_FENCE                       a number that grows with every grant, for whatever the command writes to\n  \
    SEMEL_DERIVED_KEY                 an idempotency key for a system further down, the same on every attempt\n  \
    SEMEL_PIPELINE, SEMEL_STREAM, SEMEL_POSITION\n  \
    SEMEL_HEADER_NAME                 each header, in capital letters; what is no letter or digit is an underscore";
/// How many bytes of headers are handed over: the system bounds what a process may be given, and one that gets more is not
/// started at all. A header that does not fit is left out, because half of it would say something else.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// Variables for a command.
pub(super) struct Environment(Vec<(String, String)>);

impl Environment {
    /// Of an event.
    pub(super) fn of(pipeline: &str, event: &Event) -> Self {
        let mut environment = Self(Vec::new());
        environment.put("SEMEL_PIPELINE", pipeline);
        environment.put("SEMEL_STREAM", &event.stream);
        if let Some(position) = event.position {
            environment.put("SEMEL_POSITION", &position.to_string());
        }
        environment.put("SEMEL_EVENT_ID", event.id.as_deref().unwrap_or_default());
        let mut room = HEADER_BYTES_MAX;
        for header in &event.headers {
            let name = format!("{HEADER}{}", sanitised(&header.name));
            let takes = name.len().saturating_add(header.value.len());
            if takes <= room && !environment.has(&name) {
                room = room.saturating_sub(takes);
                environment.put(&name, &header.value);
            }
        }
        environment
    }

    /// The same with what the permit says. An event without a key is processed without protection, or was requeued.
    pub(super) fn under(mut self, permit: &Permit) -> Self {
        let key = permit.key();
        let has_key = EventId::read(key.operation(), key.name()).is_none_or(|(event, _)| event.has_key());
        let is_named = has_key && !permit.is_unprotected();
        self.put("SEMEL_KEY", if is_named { key.name() } else { "" });
        self.put("SEMEL_ATTEMPT", &permit.attempt().to_string());
        self.put("SEMEL_FENCE", &permit.fence().to_string());
        self.put("SEMEL_DERIVED_KEY", &permit.derive("exec"));
        self
    }

    /// One more variable.
    pub(super) fn put(&mut self, name: &str, value: &str) {
        // No variable can hold a NUL.
        self.0.push((name.to_owned(), value.replace('\0', "")));
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Hands them to a command, and nothing that only looks like them.
    pub(super) fn give(&self, command: &mut Command) {
        for name in NAMES {
            command.env_remove(name);
        }
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with(HEADER)) {
                command.env_remove(name);
            }
        }
        command.envs(self.0.iter().map(|(name, value)| (name, value)));
    }
}

/// The name of a header as a variable's: capital letters, digits and underscores.
fn sanitised(name: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(fit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
        environment.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_header_becomes_a_variable_that_a_shell_can_name() {
        let event =
            Event::new("topic/0", "e-1", "x").at(7).header("Trace-Id", "a\0b").header("zürich.x", "y");
        let environment = Environment::of("orders", &event);
        for (name, said) in [
            ("SEMEL_PIPELINE", "orders"),
            ("SEMEL_STREAM", "topic/0"),
            ("SEMEL_POSITION", "7"),
            ("SEMEL_EVENT_ID", "e-1"),
            ("SEMEL_HEADER_TRACE_ID", "ab"),
            ("SEMEL_HEADER_Z_RICH_X", "y"),
        ] {
            assert_eq!(value(&environment, name), Some(said), "{name}");
        }
    }

    #[test]
    fn the_first_of_two_headers_counts_and_one_that_is_too_large_is_left_out() {
        let event = Event::new("s", "e", "x").header("big", &"x".repeat(HEADER_BYTES_MAX));
        let event = event.header("a-b", "first").header("A_B", "second");
        let environment = Environment::of("orders", &event);
        assert_eq!(value(&environment, "SEMEL_HEADER_A_B"), Some("first"));
        assert_eq!(value(&environment, "SEMEL_HEADER_BIG"), None);
    }
}
