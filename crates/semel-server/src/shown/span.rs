//! Spans as people write and read them: `500ms`, `10m`, `1h30m`; `3m 12s`, `2d 4h`.

use std::time::Duration;

/// Units from the longest to the shortest, in milliseconds.
const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads `10m`, `1h30m`, `2d`.
pub fn parse(text: &str) -> Result<Duration, String> {
    let refused = || format!("`{text}` is no span of time; write 500ms, 30s, 10m, 1h30m or 2d");
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
        for (text, seconds) in [("30s", 30), ("10m", 600), ("1h30m", 5_400), ("2d", 172_800), ("1w", 604_800)]
        {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
    }

    #[test]
    fn a_span_without_a_unit_or_a_number_is_refused_with_examples() {
        for text in
            ["", "90", "m", "10 m", "1y", "-1s", "10m5", "99999999999999999999s", "99999999999999999w"]
        {
            let error = parse(text).expect_err(text);
            assert!(error.contains("1h30m"), "{error}");
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
