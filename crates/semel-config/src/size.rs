//! Sizes as a file has them: `512B`, `64KiB`, `1MiB`.

/// Units from the largest to the smallest, in bytes as a power of two.
const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

/// Reads `64KiB`.
pub fn parse(text: &str) -> Result<u64, String> {
    let refused = || format!("\"{text}\", no size; write \"512B\", \"64KiB\", \"1MiB\" or \"2GiB\"");
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| refused())?;
    let (_, bits) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(refused)?;
    number.checked_mul(1 << bits).ok_or_else(refused)
}

/// The size in the largest unit that holds it exactly.
pub fn written(bytes: u64) -> String {
    let fits = |bits: u32| bytes > 0 && bytes.trailing_zeros() >= bits;
    let (unit, bits) = UNITS.iter().find(|(_, bits)| fits(*bits)).unwrap_or(&("B", 0));
    format!("{}{unit}", bytes >> bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_back_as_it_was_written() {
        for text in ["0B", "1B", "512B", "64KiB", "1MiB", "1025KiB", "2GiB"] {
            assert_eq!(written(parse(text).expect("is fine")), text);
        }
        assert_eq!(parse("1 MiB"), Ok(1 << 20));
    }

    #[test]
    fn a_size_without_a_unit_that_is_known_is_refused_with_examples() {
        for text in ["", "1", "MiB", "1MB", "1.5MiB", "-1B", "99999999999999999999B", "99999999999999GiB"] {
            assert!(parse(text).expect_err(text).contains("\"64KiB\""), "{text}");
        }
    }
}
