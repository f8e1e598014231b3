//! The key of a request, from its headers: quoted or bare, once, and from several sources only if they agree.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::profile::{KeyForm, Names, UnquotedKeys};
use crate::structured;

/// A key that cannot be read. It never repeats the value: a key is nobody else's business, also in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    header: HeaderName,
    fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    Empty,
    TooLong { chars_max: usize },
    TwoLines,
    TwoKeys,
    NotQuoted,
    NotAString,
    NotPlain,
    NotAscii,
    Disagrees { with: HeaderName },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { header, fault } = self;
        match fault {
            Fault::Empty => {
                write!(f, "{header} is empty; send a value that is new for every request, a UUID say")
            }
            Fault::TooLong { chars_max } => {
                write!(f, "{header} is longer than {chars_max} characters; send a shorter one, a UUID say")
            }
            Fault::TwoLines => write!(f, "{header} is there more than once; send one key a request"),
            Fault::TwoKeys => {
                write!(f, "{header} is a list; send one key a request, and quote one that holds a comma")
            }
            Fault::NotQuoted => {
                write!(f, "{header} is not quoted; send it in double quotes: {header}: \"…\"")
            }
            Fault::NotAString => write!(
                f,
                "{header} is no structured field String (RFC 8941); send printable ASCII in double quotes, and a \
                 backslash before each quote and backslash in it"
            ),
            Fault::NotPlain => write!(
                f,
                "{header} holds a space, a semicolon, a quote or a control character; put printable ASCII in double \
                 quotes, or use letters, digits and dashes only"
            ),
            Fault::NotAscii => write!(
                f,
                "{header} holds characters that are not ASCII, which a key cannot have, with quotes or without; send \
                 printable ASCII: a UUID, or the key percent-encoded or in base64"
            ),
            Fault::Disagrees { with } => {
                write!(f, "{header} and {with} hold different keys; send one of them")
            }
        }
    }
}

impl Error for Malformed {}

/// The key that a request carries, if it carries one.
pub(crate) fn key_of<'a>(
    headers: &'a HeaderMap,
    names: &Names,
    form: KeyForm,
) -> Result<Option<Cow<'a, str>>, Malformed> {
    let mut found = key_in(headers, &names.key, form)?.map(|key| (&names.key, key));
    for alias in &names.key_aliases {
        let Some(key) = key_in(headers, alias, form)? else { continue };
        match &found {
            Some((name, other)) if *other != key => {
                let fault = Fault::Disagrees { with: alias.clone() };
                return Err(Malformed { header: (*name).clone(), fault });
            }
            Some(_) => {}
            None => found = Some((alias, key)),
        }
    }
    Ok(found.map(|(_, key)| key))
}

/// The key that the header `name` holds.
fn key_in<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    form: KeyForm,
) -> Result<Option<Cow<'a, str>>, Malformed> {
    let mut lines = headers.get_all(name).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    let malformed = |fault| Malformed { header: name.clone(), fault };
    // Two lines that say the same are refused, too: one that forwards the first and one that forwards the last
    // must never have to agree on which is the key.
    if lines.next().is_some() {
        return Err(malformed(Fault::TwoLines));
    }
    read(line, form).map(Some).map_err(malformed)
}

fn read(line: &HeaderValue, form: KeyForm) -> Result<Cow<'_, str>, Fault> {
    // Only spaces: a tab is no part of a structured field, and no server leaves one at the ends of a value.
    let value = trimmed(line.as_bytes());
    let key = match value {
        [] => return Err(Fault::Empty),
        [b'"', ..] => quoted(value)?,
        _ => Cow::Borrowed(unquoted(value, form.unquoted)?),
    };
    // A name of the engine is bounded, too, and its refusal would come too late to name the header.
    let chars_max = form.chars_max.min(semel::NAME_BYTES_MAX);
    match key.trim() {
        "" => Err(Fault::Empty),
        text if text.len() > chars_max => Err(Fault::TooLong { chars_max }),
        text if text.len() == key.len() => Ok(key),
        text => Ok(Cow::Owned(text.to_owned())),
    }
}

fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] | [rest @ .., b' '] = value {
        value = rest;
    }
    value
}

fn quoted(value: &[u8]) -> Result<Cow<'_, str>, Fault> {
    match structured::string(value) {
        Ok(text) => Ok(text),
        Err(_) if !value.is_ascii() => Err(Fault::NotAscii),
        Err(_) if starts_a_list(value) => Err(Fault::TwoKeys),
        Err(_) => Err(Fault::NotAString),
    }
}

/// Whether a comma comes after a closing quote: the most likely mistake has its own words.
fn starts_a_list(value: &[u8]) -> bool {
    let mut is_escaped = false;
    let closes = |byte: &u8| {
        let closes = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        closes
    };
    let mut quotes = value.split(closes);
    // Before the opening quote, and between the two.
    let _ = (quotes.next(), quotes.next());
    quotes.any(|after| after.contains(&b','))
}

fn unquoted(value: &[u8], policy: UnquotedKeys) -> Result<&str, Fault> {
    // First: quotes would not help, so a key must not be refused for the want of them.
    if !value.is_ascii() {
        return Err(Fault::NotAscii);
    }
    if policy == UnquotedKeys::Refused {
        return Err(Fault::NotQuoted);
    }
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b';' | b'"');
    // An apostrophe in front is somebody's idea of a quote, and the vectors refuse it; inside it is a character as any other.
    let is_quoted_otherwise = value.first() == Some(&b'\'');
    match str::from_utf8(value) {
        Ok(text) if value.iter().all(is_plain) && !is_quoted_otherwise => Ok(text),
        _ if value.contains(&b',') => Err(Fault::TwoKeys),
        _ => Err(Fault::NotPlain),
    }
}

#[cfg(test)]
mod tests;
