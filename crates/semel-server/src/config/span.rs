//! Spans of time as a file has them: `500ms`, `30s`, `1h30m`, `7d`.

use std::fmt::Write as _;
use std::time::Duration;

/// Units from the longest to the shortest, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads `30s`, `1h30m`, `7d`.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let refused =
        || format!("\"{text}\", no span of time; write \"500ms\", \"30s\", \"5m\", \"24h\" or \"7d\"");
    let (mut rest, mut millis) = (text.trim(), 0_u64);
    if rest.is_empty() {
        return Err(refused());
    }
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit());
        let (unit, after) = split(after, |c| c.is_ascii_alphabetic());
        let number: u64 = number.parse().map_err(|_| refused())?;
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refused)?;
        millis = number.checked_mul(*size).and_then(|part| millis.checked_add(part)).ok_or_else(refused)?;
        rest = after;
    }
    Ok(Duration::from_millis(millis))
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// The span in as many units as it takes: it is read back as the same, to the millisecond.
pub(super) fn written(span: Duration) -> String {
    let mut millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, size) in UNITS {
        let count = millis.checked_div(size).unwrap_or(0);
        millis = millis.checked_rem(size).unwrap_or(0);
        if count > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "{count}{unit}");
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_read_back_as_it_was_written() {
        for text in ["0s", "500ms", "30s", "5m", "1d", "7d", "1h30m", "1d1h1m1s1ms"] {
            assert_eq!(written(parse(text).expect("is fine")), text);
        }
        assert_eq!(parse("24h"), Ok(Duration::from_hours(24)));
    }

    #[test]
    fn a_span_without_a_unit_or_a_number_is_refused_with_examples() {
        for text in
            ["", "90", "m", "10 m", "1y", "-1s", "10m5", "99999999999999999999s", "99999999999999999d"]
        {
            assert!(parse(text).expect_err(text).contains("\"24h\""), "{text}");
        }
    }
}
