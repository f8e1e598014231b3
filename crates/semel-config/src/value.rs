//! How values are read: each function says what it takes, and what to write instead of anything else.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use toml::Spanned;
use toml::de::DeValue;

use super::errors::Span;
use super::layout::did_you_mean;
use super::size;
use super::span;

/// A value, and where it was written.
pub type Value<'t> = Spanned<DeValue<'t>>;
/// What a value means, or everything that is wrong with it.
pub type Read<T> = Result<T, Vec<Wrong>>;

/// What is wrong with a value. The message goes on after the field's name.
#[derive(Debug)]
pub struct Wrong {
    /// Where.
    pub span: Span,
    /// What, and what to write instead.
    pub message: String,
}

/// A value that is refused; the message goes on after the field's name.
pub fn wrong<T>(value: &Value<'_>, message: impl Into<String>) -> Read<T> {
    Err(vec![Wrong { span: value.span(), message: message.into() }])
}

/// What a value is, in words.
pub fn kind(value: &Value<'_>) -> &'static str {
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
pub fn text<T, E: Display>(how: impl Fn(&str) -> Result<T, E>) -> impl Fn(&Value<'_>) -> Read<T> {
    move |value| how(in_quotes(value)?).or_else(|error| wrong(value, format!("is {error}")))
}

fn in_quotes<'v>(value: &'v Value<'_>) -> Read<&'v str> {
    let Some(text) = value.get_ref().as_str() else {
        return wrong(value, format!("is {}; write text in quotes", kind(value)));
    };
    Ok(text)
}

/// Text that is not empty.
pub fn any_text(value: &Value<'_>) -> Read<String> {
    text(|text| if text.trim().is_empty() { Err("empty") } else { Ok(text.to_owned()) })(value)
}

/// A file that is there.
pub fn file(value: &Value<'_>) -> Read<PathBuf> {
    text(|text| {
        let path = PathBuf::from(text);
        if path.is_file() {
            Ok(path)
        } else {
            Err(format!("\"{text}\", and there is no such file; paths start where the proxy is started"))
        }
    })(value)
}

/// Words, and what they mean: read and written by the same table.
pub type Words<T> = [(&'static str, T)];

/// One of some words.
pub fn word<T: Copy>(words: &'static Words<T>) -> impl Fn(&Value<'_>) -> Read<T> {
    text(move |text| {
        let found = words.iter().find(|(word, _)| *word == text);
        let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>();
        found.map(|(_, meaning)| *meaning).ok_or_else(|| no_such_word(text, &known()))
    })
}

fn no_such_word(text: &str, known: &[&'static str]) -> String {
    let all: Vec<_> = known.iter().map(|word| format!("\"{word}\"")).collect();
    format!("\"{text}\"; write {}{}", all.join(" or "), did_you_mean(text, known.iter().copied()))
}

/// The word for a meaning.
pub fn word_for<T: PartialEq>(words: &Words<T>, meaning: &T) -> &'static str {
    words.iter().find(|(_, found)| found == meaning).map_or("", |(word, _)| word)
}

/// A value of its own, or a word for none of it.
pub fn or_none<T>(
    none: &'static str,
    how: impl Fn(&Value<'_>) -> Read<T>,
) -> impl Fn(&Value<'_>) -> Read<Option<T>> {
    move |value| if value.get_ref().as_str() == Some(none) { Ok(None) } else { how(value).map(Some) }
}

/// A list, in which everything that is wrong is told at once.
pub fn list<T>(how: impl Fn(&Value<'_>) -> Read<T>) -> impl Fn(&Value<'_>) -> Read<Vec<T>> {
    move |value| {
        let (mut read, mut wrongs) = (Vec::new(), Vec::new());
        for value in elements(value)? {
            match how(value) {
                Ok(value) => read.push(value),
                Err(more) => wrongs.extend(more),
            }
        }
        if wrongs.is_empty() { Ok(read) } else { Err(wrongs) }
    }
}

fn elements<'v, 't>(value: &'v Value<'t>) -> Read<&'v [Value<'t>]> {
    let DeValue::Array(values) = value.get_ref() else {
        return wrong(value, format!("is {}; write a list: [\"…\", \"…\"]", kind(value)));
    };
    Ok(values)
}

/// `true` or `false`.
pub fn truth(value: &Value<'_>) -> Read<bool> {
    value
        .get_ref()
        .as_bool()
        .map_or_else(|| wrong(value, format!("is {}; write true or false", kind(value))), Ok)
}

/// A whole number between bounds, of whatever type its place has.
pub fn count<T: TryFrom<u64>>(bounds: RangeInclusive<u64>) -> impl Fn(&Value<'_>) -> Read<T> {
    move |value| fitting(value, whole_number(value, &bounds))
}

/// A number as the type of its place, whose bounds were checked before.
fn fitting<T: TryFrom<u64>>(value: &Value<'_>, number: Read<u64>) -> Read<T> {
    T::try_from(number?).or_else(|_| wrong(value, "is more than this machine can count"))
}

fn whole_number(value: &Value<'_>, bounds: &RangeInclusive<u64>) -> Read<u64> {
    let (least, most) = (bounds.start(), bounds.end());
    let write = if *most == u64::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
    let Some(number) = value.get_ref().as_integer() else {
        return wrong(value, format!("is {}; write a whole number, {write}", kind(value)));
    };
    let read = u64::from_str_radix(number.as_str(), number.radix()).ok();
    let read = read.filter(|number| bounds.contains(number));
    read.map_or_else(|| wrong(value, format!("is {number}; write {write}")), Ok)
}

/// A span of time between bounds.
pub fn time(bounds: RangeInclusive<Duration>) -> impl Fn(&Value<'_>) -> Read<Duration> {
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
pub fn bytes<T: TryFrom<u64>>(bounds: RangeInclusive<u64>) -> impl Fn(&Value<'_>) -> Read<T> {
    move |value| fitting(value, size_in_bytes(value, &bounds))
}

fn size_in_bytes(value: &Value<'_>, bounds: &RangeInclusive<u64>) -> Read<u64> {
    if value.get_ref().is_integer() {
        return whole_number(value, bounds);
    }
    let Some(text) = value.get_ref().as_str() else {
        return wrong(value, format!("is {}; write a size: \"1MiB\", \"64KiB\", 512", kind(value)));
    };
    match size::parse(text) {
        Err(error) => wrong(value, format!("is {error}")),
        Ok(bytes) if bounds.contains(&bytes) => Ok(bytes),
        Ok(_) => {
            let (least, most) = (size::written(*bounds.start()), size::written(*bounds.end()));
            wrong(value, format!("is \"{text}\"; write {least} to {most}"))
        }
    }
}

/// Where something listens.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    local.as_deref().unwrap_or(text).parse().map_err(|_| {
        let port = text.trim_start_matches(':').parse::<u16>().unwrap_or(8080);
        format!("\"{text}\", no address to listen on; write \"127.0.0.1:{port}\", or \"0.0.0.0:{port}\" for every network")
    })
}

/// `10.0.0.0/8`, or one address.
pub fn network(text: &str) -> Result<IpNet, String> {
    let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let net = net.map_err(|_| format!("\"{text}\", no network; write \"10.0.0.0/8\" or \"192.0.2.7\""))?;
    if net.prefix_len() == 0 {
        return Err(format!(
            "\"{text}\", every address there is: then any client could pick who it is; name your proxies"
        ));
    }
    Ok(net.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_read_and_all_of_them_is_none() {
        assert_eq!(network("10.1.2.3/8").map(|net| net.to_string()), Ok("10.0.0.0/8".to_owned()));
        assert_eq!(network("::1").map(|net| net.to_string()), Ok("::1/128".to_owned()));
        assert!(network("0.0.0.0/0").expect_err("is all").contains("any client"));
        assert!(network("ten").is_err() && network("10.0.0.0/33").is_err());
    }

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

    #[test]
    fn an_address_without_a_host_is_told_how_to_write_it() {
        assert_eq!(address("localhost:80"), Ok(([127, 0, 0, 1], 80).into()));
        assert!(address("[::1]:80").is_ok());
        for text in ["9000", ":9000"] {
            assert!(address(text).expect_err(text).contains("\"127.0.0.1:9000\""));
        }
    }
}
