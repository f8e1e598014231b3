//! Moments of a store's clock, for people and for scripts.

use semel::clock::Timestamp;
pub(crate) use semel_ops::format::moment::rfc3339;
use semel_ops::format::moment::{date, time};

use super::span;

/// `2026-11-16 02:14:26 UTC`, for people.
pub(crate) fn shown(moment: Timestamp) -> String {
    format!("{} {} UTC", date(moment), time(moment))
}

/// `3m 12s ago` or `in 3m 12s`.
pub(crate) fn relative(moment: Timestamp, now: Timestamp) -> String {
    if moment > now {
        format!("in {}", span::shown(moment.since(now)))
    } else {
        format!("{} ago", span::shown(now.since(moment)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(1_000_000_u64.saturating_mul(seconds))
    }

    #[test]
    fn moments_are_dated_by_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (951_868_799, "2000-02-29T23:59:59.000000Z"),
            (951_868_800, "2000-03-01T00:00:00.000000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
            (1_798_761_599, "2026-12-31T23:59:59.000000Z"),
        ] {
            assert_eq!(rfc3339(at(seconds)), text);
        }
        assert_eq!(rfc3339(Timestamp::from_micros(1_000_042)), "1970-01-01T00:00:01.000042Z");
        assert_eq!(shown(at(86_399)), "1970-01-01 23:59:59 UTC");
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let mut before = date(at(0));
        for day in 1..146_097 {
            let today = date(at(day * 86_400));
            assert!(today > before, "{before} {today}");
            before = today;
        }
        assert_eq!(before, "2369-12-31");
    }

    #[test]
    fn what_is_to_come_is_not_ago() {
        assert_eq!(relative(at(10), at(70)), "1m ago");
        assert_eq!(relative(at(70), at(10)), "in 1m");
    }
}
