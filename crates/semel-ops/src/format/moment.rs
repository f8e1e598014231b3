//! Moments of a clock, as text.

use semel::clock::Timestamp;

/// `2026-11-16T02:14:26.123456Z`.
pub fn rfc3339(moment: Timestamp) -> String {
    if let Some(text) = Rfc3339::of(moment) {
        return text.as_str().to_owned();
    }
    let (date, time, micros) = (date(moment), time(moment), moment.as_micros() % 1_000_000);
    format!("{date}T{time}.{micros:06}Z")
}

/// `02:14:26`.
pub fn time(moment: Timestamp) -> String {
    let seconds = moment.as_micros() / 1_000_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// `2026-11-16`.
pub fn date(moment: Timestamp) -> String {
    let (year, month, day) = calendar(moment);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day, by the calendar's own arithmetic: eras of 400 years, years that begin in March.
fn calendar(moment: Timestamp) -> (u64, u64, u64) {
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
    (era.saturating_mul(400).saturating_add(year).saturating_add(turn), month, day)
}

/// A moment as text, made without an allocation: answers are full of them.
pub(crate) struct Rfc3339([u8; 27]);

impl Rfc3339 {
    /// `None` beyond the year 9999, whose text is longer.
    pub(crate) fn of(moment: Timestamp) -> Option<Self> {
        let (year, month, day) = calendar(moment);
        let (seconds, micros) = (moment.as_micros() / 1_000_000 % 86_400, moment.as_micros() % 1_000_000);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        for (range, number) in [
            (0..4, year),
            (5..7, month),
            (8..10, day),
            (11..13, seconds / 3_600),
            (14..16, seconds / 60 % 60),
            (17..19, seconds % 60),
            (20..26, micros),
        ] {
            digits(text.get_mut(range)?, number);
        }
        (year <= 9_999).then_some(Self(text))
    }

    pub(crate) fn as_str(&self) -> &str {
        // Digits are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// The last digits of a number, as many as there is room for.
fn digits(room: &mut [u8], mut number: u64) {
    for digit in room.iter_mut().rev() {
        *digit = b'0'.saturating_add(u8::try_from(number % 10).unwrap_or(0));
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_the_same_text_however_it_is_made() {
        for seconds in [0, 951_782_399, 951_868_800, 1_798_761_599, 4_107_542_400, 253_402_300_799] {
            let moment = Timestamp::from_micros(seconds * 1_000_000 + 123_456);
            let slowly = format!("{}T{}.123456Z", date(moment), time(moment));
            assert_eq!(rfc3339(moment), slowly);
            assert_eq!(Rfc3339::of(moment).map(|text| text.as_str().to_owned()), Some(slowly));
        }
        let far = Timestamp::from_micros(253_402_300_800_000_000);
        assert!(Rfc3339::of(far).is_none());
        assert_eq!(rfc3339(far), "10000-01-01T00:00:00.000000Z");
    }
}
