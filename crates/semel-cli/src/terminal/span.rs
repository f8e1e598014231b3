//! Spans as people type and read them.

use std::time::Duration;

pub(crate) use semel_server::span::shown;

/// Reads `10m`, `1h30m`, `2d`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    semel_server::span::parse(text)
        .ok_or_else(|| format!("`{text}` is no span of time; write 500ms, 30s, 10m, 1h30m or 2d"))
}
