//! Moments of a clock, as text.

use semel::clock::Timestamp;

/// `2026-11-16T02:14:26.123456Z`.
pub fn rfc3339(moment: Timestamp) -> String {
    let (date, time) = (date(moment), time(moment));
    let micros = moment.as_micros() % 1_000_000;
    format!("{date}T{time}.{micros:06}Z")
}

/// `02:14:26`.
pub fn time(moment: Timestamp) -> String {
    let seconds = moment.as_micros() / 1_000_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// `2026-11-16`, by the calendar's own arithmetic: eras of 400 years, years that begin in March.
pub fn date(moment: Timestamp) -> String {
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
