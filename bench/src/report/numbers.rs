//! What becomes of many numbers: the middle one, and whether it is enough.

use serde::Serialize;

/// What a number must reach.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) wanted: String,
    pub(crate) found: String,
    pub(crate) reached: bool,
}

impl Bar {
    /// Reached from `wanted` on. A unit that starts with `×` says what the number is a multiple of.
    pub(crate) fn at_least(name: String, wanted: f64, found: f64, unit: &str) -> Self {
        let text = format!("{found:.2}{}", if unit.starts_with('×') { "×" } else { "" });
        Self {
            name,
            wanted: format!("at least {}{unit}", short(wanted)),
            found: text,
            reached: found >= wanted,
        }
    }

    /// Reached up to `wanted`.
    pub(crate) fn at_most(name: String, wanted: f64, found: f64, unit: &str) -> Self {
        let text = format!("{found:.2}{}", if unit.starts_with('×') { "×" } else { unit });
        Self {
            name,
            wanted: format!("at most {}{unit}", short(wanted)),
            found: text,
            reached: found <= wanted,
        }
    }
}

/// With one digit behind the point, or two where one would say another number.
fn short(number: f64) -> String {
    let one = format!("{number:.1}");
    if one.parse() == Ok(number) { one } else { format!("{number:.2}") }
}

/// Many numbers of one kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Self {
        Self {
            median: median(values),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// The middle one; of an even number, the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
    match (sorted.get(low), sorted.get(high)) {
        (Some(low), Some(high)) => f64::midpoint(*low, *high),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_of_the_sorted_values() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0])), (2.0, 2.5));
        assert!(median(&[]).is_nan());
    }
}
