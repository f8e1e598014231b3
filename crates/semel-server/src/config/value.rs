//! How values are read: each function says what it takes, and what to write instead of anything else.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::faults::Span;
use super::nearest::did_you_mean;
use super::size;
use crate::shown::span;

/// A value, and where it was written.
pub(super) type Value<'t> = Spanned<DeValue<'t>>;
/// What a value means, or everything that is wrong with it.
pub(super) type Read<T> = Result<T, Vec<Wrong>>;

/// What is wrong with a value. The message goes on after the field's name.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) span: Span,
    pub(super) message: String,
}

pub(super) fn wrong<T>(value: &Value<'_>, message: impl Into<String>) -> Read<T> {
    Err(vec![Wrong { span: value.span(), message: message.into() }])
}

/// What a value is, in words.
pub(super) fn kind(value: &Value<'_>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Text that means something. The reason of a refusal goes on after "is", so that it can repeat the text or keep it to itself.
pub(super) fn text<T, E: Display>(how: impl Fn(&str) -> Result<T, E>) -> impl Fn(&Value<'_>) -> Read<T> {
    move |value| match value.get_ref().as_str() {
        None => wrong(value, format!("is {}; write text in quotes", kind(value))),
        Some(text) => how(text).or_else(|error| wrong(value, format!("is {error}"))),
    }
}

/// Text that is not empty.
pub(super) fn any_text(value: &Value<'_>) -> Read<String> {
    text(|text| if text.trim().is_empty() { Err("empty") } else { Ok(text.to_owned()) })(value)
}

/// A file that is there.
pub(super) fn file(value: &Value<'_>) -> Read<PathBuf> {
    text(|text| {
        let path = PathBuf::from(text);
        if path.is_file() {
            Ok(path)
        } else {
            Err(format!("\"{text}\", and there is no such file; paths start where the proxy is started"))
        }
    })(value)
}

/// One of some words.
pub(super) fn word<T: Copy>(words: &'static [(&'static str, T)]) -> impl Fn(&Value<'_>) -> Read<T> {
    text(move |text| {
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let all: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            let hint = did_you_mean(text, words.iter().map(|(word, _)| *word));
            format!("\"{text}\"; write {}{hint}", all.join(" or "))
        })
    })
}

/// A value of its own, or a word for none of it.
pub(super) fn or_none<T>(
    none: &'static str,
    how: impl Fn(&Value<'_>) -> Read<T>,
) -> impl Fn(&Value<'_>) -> Read<Option<T>> {
    move |value| if value.get_ref().as_str() == Some(none) { Ok(None) } else { how(value).map(Some) }
}

/// A list, in which everything that is wrong is told at once.
pub(super) fn list<T>(how: impl Fn(&Value<'_>) -> Read<T>) -> impl Fn(&Value<'_>) -> Read<Vec<T>> {
    move |value| {
        let DeValue::Array(values) = value.get_ref() else {
            return wrong(value, format!("is {}; write a list: [\"…\", \"…\"]", kind(value)));
        };
        let (mut read, mut wrongs) = (Vec::new(), Vec::new());
        for value in values {
            match how(value) {
                Ok(value) => read.push(value),
                Err(more) => wrongs.extend(more),
            }
        }
        if wrongs.is_empty() { Ok(read) } else { Err(wrongs) }
    }
}

/// `true` or `false`.
pub(super) fn truth(value: &Value<'_>) -> Read<bool> {
    value
        .get_ref()
        .as_bool()
        .map_or_else(|| wrong(value, format!("is {}; write true or false", kind(value))), Ok)
}

/// A whole number between bounds, of whatever type its place has.
pub(super) fn count<T: TryFrom<u64>>(bounds: RangeInclusive<u64>) -> impl Fn(&Value<'_>) -> Read<T> {
    move |value| {
        let (least, most) = (bounds.start(), bounds.end());
        let write = if *most == u64::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
        let Some(number) = value.get_ref().as_integer() else {
            return wrong(value, format!("is {}; write a whole number, {write}", kind(value)));
        };
        let read = u64::from_str_radix(number.as_str(), number.radix()).ok();
        let read = read.filter(|number| bounds.contains(number)).and_then(|number| T::try_from(number).ok());
        read.map_or_else(|| wrong(value, format!("is {number}; write {write}")), Ok)
    }
}

/// A span of time between bounds.
pub(super) fn time(bounds: RangeInclusive<Duration>) -> impl Fn(&Value<'_>) -> Read<Duration> {
    move |value| {
        let write = format!("write {} to {}", span::written(*bounds.start()), span::written(*bounds.end()));
        let Some(text) = value.get_ref().as_str() else {
            return wrong(
                value,
                format!(
                    "is {}; write a span of time in quotes: \"30s\", \"5m\", \"24h\", \"7d\"",
                    kind(value)
                ),
            );
        };
        match span::read(text) {
            Some(span) if bounds.contains(&span) => Ok(span),
            Some(_) => wrong(value, format!("is \"{text}\"; {write}")),
            None => wrong(
                value,
                format!(
                    "is \"{text}\", no span of time; write \"500ms\", \"30s\", \"5m\", \"24h\" or \"7d\""
                ),
            ),
        }
    }
}

/// A size in bytes between bounds.
pub(super) fn bytes<T: TryFrom<u64>>(bounds: RangeInclusive<u64>) -> impl Fn(&Value<'_>) -> Read<T> {
    move |value| {
        if value.get_ref().is_integer() {
            return count(bounds.clone())(value);
        }
        let Some(text) = value.get_ref().as_str() else {
            return wrong(value, format!("is {}; write a size: \"1MiB\", \"64KiB\", 512", kind(value)));
        };
        let read = match size::parse(text) {
            Err(error) => return wrong(value, format!("is {error}")),
            Ok(bytes) => {
                Some(bytes).filter(|bytes| bounds.contains(bytes)).and_then(|bytes| T::try_from(bytes).ok())
            }
        };
        let write =
            || format!("write {} to {}", size::written(*bounds.start()), size::written(*bounds.end()));
        read.map_or_else(|| wrong(value, format!("is \"{text}\"; {}", write())), Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(text: &str, how: impl Fn(&Value<'_>) -> Read<T>) -> Result<T, String> {
        let value = DeValue::parse(text).expect("is TOML");
        how(&value)
            .map_err(|wrongs| wrongs.into_iter().map(|wrong| wrong.message).collect::<Vec<_>>().join(" + "))
    }

    #[test]
    fn a_number_out_of_bounds_is_told_the_bounds() {
        assert_eq!(read("0x10", count::<u16>(1..=100)), Ok(16));
        assert_eq!(read("101", count::<u16>(1..=100)), Err("is 101; write 1 to 100".to_owned()));
        assert_eq!(read("-1", count::<u64>(1..=u64::MAX)), Err("is -1; write 1 or more".to_owned()));
        assert_eq!(read("'7'", count::<u16>(1..=9)), Err("is text; write a whole number, 1 to 9".to_owned()));
    }

    #[test]
    fn everything_wrong_in_a_list_is_told() {
        let words = word(&[("a", 1), ("b", 2)]);
        assert_eq!(read("['a', 'b']", list(&words)), Ok(vec![1, 2]));
        let said = read("['a', 'x', 3]", list(&words)).unwrap_err();
        assert_eq!(said, "is \"x\"; write \"a\" or \"b\" + is a number; write text in quotes");
    }

    #[test]
    fn a_span_and_a_size_are_read_between_their_bounds() {
        let minute = Duration::from_mins(1);
        assert_eq!(read("'1m'", time(Duration::from_secs(1)..=minute)), Ok(minute));
        assert_eq!(
            read("'2m'", time(Duration::from_secs(1)..=minute)),
            Err("is \"2m\"; write 1s to 1m".to_owned())
        );
        assert!(read("30", time(Duration::ZERO..=minute)).unwrap_err().contains("in quotes: \"30s\""));
        assert_eq!(
            (read("'1KiB'", bytes::<usize>(1..=4096)), read("7", bytes::<usize>(1..=4096))),
            (Ok(1024), Ok(7))
        );
        assert_eq!(read("'1MiB'", bytes::<usize>(1..=4096)), Err("is \"1MiB\"; write 1B to 4KiB".to_owned()));
    }

    #[test]
    fn a_word_for_none_is_none_and_another_is_read() {
        let how = || or_none("off", count::<u8>(1..=9));
        assert_eq!((read("'off'", how()), read("7", how())), (Ok(None), Ok(Some(7))));
        assert!(read("'of'", how()).is_err());
    }
}
