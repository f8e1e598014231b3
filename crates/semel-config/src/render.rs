//! Settings as the text of a file that means the same.

use std::fmt::Display;
use std::time::Duration;

use crate::{size, span};

/// Names and values of one table, as they are written.
pub type Lines = Vec<(&'static str, String)>;

/// A table under its heading; nothing if it is empty.
pub fn table(heading: &str, lines: Lines) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = lines.into_iter().map(|(name, value)| format!("{name:<width$} = {value}\n"));
    let heading = if heading.is_empty() { String::new() } else { format!("\n{heading}\n") };
    std::iter::once(heading).chain(lines).collect()
}

/// A string in quotes.
pub fn quoted(text: impl Display) -> String {
    toml::Value::String(text.to_string()).to_string()
}

/// A list of values that are written already.
pub fn listed<T: Display>(values: impl IntoIterator<Item = T>) -> String {
    format!("[{}]", values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", "))
}

/// A size in bytes.
pub fn sized(bytes: u64) -> String {
    quoted(size::written(bytes))
}

/// A span of time.
pub fn timed(duration: Duration) -> String {
    quoted(span::written(duration))
}
