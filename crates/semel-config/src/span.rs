//! Spans of time as people write them: `500ms`, `30s`, `1h30m`, `7d`.

use std::fmt::Write as _;
use std::time::Duration;

/// Units from the longest to the shortest, in milliseconds.
const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads `30s`, `1h30m`, `7d`, or says what to write.
pub fn parse(text: &str) -> Result<Duration, String> {
    read(text).ok_or_else(|| format!("`{text}` is no span of time; write 500ms, 30s, 10m, 1h30m or 2d"))
}

/// Reads `30s`, `1h30m`, `7d`; `None` if that is not what it is.
pub fn read(text: &str) -> Option<Duration> {
    let (mut rest, mut millis) = (text.trim(), 0_u64);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit());
        let (unit, after) = split(after, |c| c.is_ascii_alphabetic());
        let number: u64 = number.parse().ok()?;
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        millis = number.checked_mul(*size).and_then(|part| millis.checked_add(part))?;
        rest = after;
    }
    Some(Duration::from_millis(millis))
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// The span in as many units as it takes: it is read back as the same, to the millisecond.
pub fn written(span: Duration) -> String {
    let mut millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    // Nobody counts a retention in weeks and days.
    for (unit, size) in UNITS.into_iter().filter(|(unit, _)| *unit != "w") {
        let count = millis.checked_div(size).unwrap_or(0);
        millis = millis.checked_rem(size).unwrap_or(0);
        if count > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "{count}{unit}");
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// The two largest units of a span: enough to decide, short enough for a table.
pub fn shown(span: Duration) -> String {
    let mut millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    let mut parts = Vec::new();
    for (unit, size) in UNITS.iter().filter(|(unit, _)| !matches!(*unit, "w" | "ms")) {
        let count = millis.checked_div(*size).unwrap_or(0);
        millis = millis.checked_rem(*size).unwrap_or(0);
        if count > 0 {
            parts.push(format!("{count}{unit}"));
        }
        // `2d 3s` would be true, and useless.
        if parts.len() == 2 || (count == 0 && !parts.is_empty()) {
            break;
        }
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_read_with_its_units() {
        for (text, seconds) in
            [("30s", 30), ("10m", 600), ("1h30m", 5_400), ("24h", 86_400), ("2d", 172_800), ("1w", 604_800)]
        {
            assert_eq!(read(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(read("500ms"), Some(Duration::from_millis(500)));
    }

    #[test]
    fn a_span_is_read_back_as_it_was_written() {
        for text in ["0s", "500ms", "30s", "5m", "1d", "7d", "1h30m", "1d1h1m1s1ms"] {
            assert_eq!(written(parse(text).expect("is fine")), text);
        }
    }

    #[test]
    fn a_span_without_a_unit_or_a_number_is_refused_with_examples() {
        for text in
            ["", "90", "m", "10 m", "1y", "-1s", "10m5", "99999999999999999999s", "99999999999999999w"]
        {
            assert!(parse(text).expect_err(text).contains("1h30m"), "{text}");
        }
    }

    #[test]
    fn a_span_is_shown_in_its_two_largest_units() {
        let shown = |millis| shown(Duration::from_millis(millis));
        assert_eq!([shown(0), shown(999), shown(1_000), shown(72_000)], ["0ms", "999ms", "1s", "1m 12s"]);
        assert_eq!([shown(3_600_000), shown(93_600_000)], ["1h", "1d 2h"]);
        assert_eq!(shown(86_403_000), "1d", "three seconds more or less do not matter after a day");
    }
}
