//! Moments of a store's clock, for people and for scripts.

use semel::clock::Timestamp;

use super::span;

/// `2026-11-16T02:14:26.123456Z`, for scripts.
pub(crate) fn rfc3339(moment: Timestamp) -> String {
    let (date, time) = (date(moment), time(moment));
    let micros = moment.as_micros() % 1_000_000;
    format!("{date}T{time}.{micros:06}Z")
}

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

fn time(moment: Timestamp) -> String {
    let seconds = moment.as_micros() / 1_000_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// The date, by the calendar's own arithmetic: eras of 400 years, years that begin in March.
fn date(moment: Timestamp) -> String {
    /// From March of the year 0 to January of 1970.
    const DAYS_BEFORE_1970: u64 = 719_468;
    const DAYS_OF_AN_ERA: u64 = 146_097;
    let days = (moment.as_micros() / 86_400_000_000).saturating_add(DAYS_BEFORE_1970);
    let (era, day) = (days / DAYS_OF_AN_ERA, days % DAYS_OF_AN_ERA);
    let without_leap_days =
        day.saturating_sub(day / 1_460).saturating_add(day / 36_524).saturating_sub(day / 146_096);
    let year = without_leap_days / 365;
    let year_day =
        day.saturating_sub(year.saturating_mul(365).saturating_add(year / 4).saturating_sub(year / 100));
    let month = year_day.saturating_mul(5).saturating_add(2) / 153;
    let day = year_day.saturating_sub(month.saturating_mul(153).saturating_add(2) / 5).saturating_add(1);
    let (month, turn) = if month < 10 { (month.saturating_add(3), 0) } else { (month.saturating_sub(9), 1) };
    let year = era.saturating_mul(400).saturating_add(year).saturating_add(turn);
    format!("{year:04}-{month:02}-{day:02}")
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
