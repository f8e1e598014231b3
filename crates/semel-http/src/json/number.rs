//! Numbers as RFC 8785 writes them, and those that a double cannot tell from their neighbours.

/// 2^53: up to here, every integer is a double of its own.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;
/// Decimals of so many digits are never merged by a double in its normal range.
const DIGITS_SAFE: usize = 15;
/// The most significant digits that RFC 8785 writes; more than these are always merged.
const DIGITS_MAX: usize = 17;
/// Smaller ones are written with an exponent: `0.000001`, but `1e-7`.
const ZEROS_MAX: usize = 5;

/// Reads the number that `rest` begins with, appends its canonical form, and returns what comes after it.
/// `is_left_out`: only its grammar matters.
pub(super) fn number<'a>(rest: &'a [u8], written: &mut Vec<u8>, is_left_out: bool) -> Option<&'a [u8]> {
    let (number, after) = Number::read(rest)?;
    if is_left_out {
        written.extend_from_slice(number.text);
    } else {
        number.write(written)?;
    }
    Some(after)
}

/// A number by its parts.
struct Number<'a> {
    text: &'a [u8],
    whole: &'a [u8],
    /// The digits after the point, if there is one.
    fraction: Option<&'a [u8]>,
    has_exponent: bool,
}

impl<'a> Number<'a> {
    fn read(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (whole, mut rest) = digits(text.strip_prefix(b"-").unwrap_or(text))?;
        if matches!(whole, [b'0', _, ..]) {
            return None;
        }
        let mut fraction = None;
        if let Some(after) = rest.strip_prefix(b".") {
            let (found, after) = digits(after)?;
            fraction = Some(found);
            rest = after;
        }
        let has_exponent = matches!(rest, [b'e' | b'E', ..]);
        if let [b'e' | b'E', b'+' | b'-', after @ ..] | [b'e' | b'E', after @ ..] = rest {
            rest = digits(after)?.1;
        }
        // By length: to compare all that is left for every number would take the square of the text's size.
        let text = text.get(..text.len().checked_sub(rest.len())?)?;
        Some((Self { text, whole, fraction, has_exponent }, rest))
    }

    fn write(&self, written: &mut Vec<u8>) -> Option<()> {
        if self.is_canonical() {
            written.extend_from_slice(self.text);
            return Some(());
        }
        let value: f64 = str::from_utf8(self.text).ok()?.parse().ok()?;
        let mut buffer = ryu_js::Buffer::new();
        let form = buffer.format(value);
        if !self.is_told_apart(value, form) {
            return None;
        }
        written.extend_from_slice(form.as_bytes());
        Some(())
    }

    /// Whether the text is its own canonical form for sure: most numbers are, and need no arithmetic then.
    fn is_canonical(&self) -> bool {
        let Self { text, whole, fraction, has_exponent } = self;
        let fraction = fraction.unwrap_or(b"1");
        let zeros = fraction.iter().take_while(|digit| **digit == b'0').count();
        !has_exponent
            && *text != b"-0"
            && whole.len().saturating_add(fraction.len()) <= DIGITS_SAFE
            && !fraction.ends_with(b"0")
            && (*whole != b"0" || zeros <= ZEROS_MAX)
    }

    /// Whether another number that somebody means could have this form, too.
    fn is_told_apart(&self, value: f64, form: &str) -> bool {
        let size = value.abs();
        let is_integer = self.fraction.is_none() && !self.has_exponent;
        if is_integer {
            // No integer up to there is written otherwise, and none beyond it is shorter.
            return size <= INTEGER_MAX && form.trim_start_matches('-').as_bytes() == self.whole;
        }
        let digits = significant(self.text);
        let is_safe =
            (f64::MIN_POSITIVE..INTEGER_MAX).contains(&size) && digits.clone().nth(DIGITS_MAX).is_none();
        // Where doubles are further apart than the digits that were written, the shortest form must be what was
        // written. An infinity has no digits, and a zero that was none has none either.
        is_safe || size.is_finite() && digits.eq(significant(form.as_bytes()))
    }
}

/// The digits that a text begins with, one at least, and what comes after them.
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at_checked(count).filter(|(digits, _)| !digits.is_empty())
}

/// The digits that make up the value: without sign, point and exponent, and without zeros at the ends.
fn significant(text: &[u8]) -> impl Iterator<Item = u8> + Clone {
    let mantissa = text.split(|byte| matches!(byte, b'e' | b'E')).next().unwrap_or_default();
    let counts = |byte: &u8| matches!(byte, b'1'..=b'9');
    let from = mantissa.iter().position(counts).unwrap_or_default();
    let to = mantissa.iter().rposition(counts).map_or(from, |last| last.saturating_add(1));
    let trimmed = mantissa.get(from..to).unwrap_or_default();
    trimmed.iter().copied().filter(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn canonical(text: &str) -> Option<String> {
        let mut written = Vec::new();
        let rest = number(text.as_bytes(), &mut written, false)?;
        assert_eq!(rest, b"");
        Some(String::from_utf8(written).unwrap())
    }

    #[test]
    fn one_value_has_one_form() {
        for (text, form) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("0e5", "0"),
            ("1", "1"),
            ("1.0", "1"),
            ("10e-1", "1"),
            ("4.50", "4.5"),
            ("2e-3", "0.002"),
            ("1E30", "1e+30"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("-12.25", "-12.25"),
            ("1e21", "1e+21"),
            ("1e2", "100"),
            ("333333333.33333329", "333333333.3333333"),
            ("9007199254740992", "9007199254740992"),
            ("-9007199254740992", "-9007199254740992"),
            ("9007199254740992.0", "9007199254740992"),
            ("1.00000000000000000000", "1"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("0.0000000000000000000000000000000000000001", "1e-40"),
            ("123456789012345.00", "123456789012345"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(form), "{text}");
        }
    }

    #[test]
    fn a_number_that_a_double_would_merge_has_no_form() {
        for text in [
            "9007199254740993",
            "-9007199254740993",
            "9007199254740994",
            "18446744073709551616",
            "9007199254740993.0",
            "9007199254740993e0",
            "9.007199254740993e15",
            "0.123456789012345678",
            "1.00000000000000001",
            "1.00000000000000001e0",
            "1e400",
            "-1e400",
            "1e-400",
            "-1e-400",
            "3e-324",
            "100000000000000000000",
        ] {
            assert_eq!(canonical(text), None, "{text}");
            assert!(number(text.as_bytes(), &mut Vec::new(), true).is_some(), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in
            ["", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "1.e5", "-.5", "NaN", "Infinity", "٣"]
        {
            assert!(number(text.as_bytes(), &mut Vec::new(), true).is_none(), "{text}");
        }
        // Where it ends is up to whoever reads on.
        assert_eq!(number(b"1x", &mut Vec::new(), false), Some(&b"x"[..]));
        assert_eq!(number(b"0x1", &mut Vec::new(), false), Some(&b"x1"[..]));
    }

    #[test]
    fn the_short_way_writes_what_the_long_way_writes() {
        let mut dice = SmallRng::seed_from_u64(5);
        let mut short = 0;
        for _ in 0..200_000 {
            let (long, short_of) = (dice.random_range(1..16), dice.random_range(1..10));
            let whole = dice.random_range(0..10_u64.pow(long));
            let fraction = dice.random_range(0..10_u64.pow(short_of));
            let width = dice.random_range(1..12);
            let whole = if dice.random_bool(0.3) { 0 } else { whole };
            let text = match dice.random_range(0..3) {
                0 => format!("{whole}"),
                1 => format!("-{whole}.{fraction:0width$}"),
                _ => format!("{whole}.{fraction:0width$}"),
            };
            let (read, _) = Number::read(text.as_bytes()).unwrap();
            if read.is_canonical() {
                short += 1;
                let value: f64 = text.parse().unwrap();
                assert_eq!(ryu_js::Buffer::new().format(value), text);
            }
        }
        assert!(short > 50_000, "only {short} took the short way");
    }
}
