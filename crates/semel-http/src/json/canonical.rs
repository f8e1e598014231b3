//! JSON to canonical JSON in one pass: what is read is written at once, and only what is out of order is moved.

use std::borrow::Cow;

use super::container::Containers;
use super::path::JsonPath;
use super::pieces::Rebuilt;
use super::{number, text};

/// The deepest nesting that has a canonical form.
const DEPTH_MAX: usize = 128;

/// The canonical form (RFC 8785) of a JSON text, without what `left_out` names.
///
/// `None` if two texts with different meanings could have the same form, or if there is none:
/// - the text is not JSON, or is nested deeper than 128;
/// - an object has two members of one name, or a string half of a surrogate pair;
/// - a number is an integer beyond 2^53, has more than 17 significant digits, or is out of a double's range.
///
/// What is left out has to be JSON, and no more.
///
/// ```
/// use semel_http::json::canonical;
///
/// let form = canonical(br#"{ "b": 1.0, "a": "\u0041" }"#, &[]);
/// assert_eq!(form.as_deref(), Some(br#"{"a":"A","b":1}"#.as_slice()));
///
/// let form = canonical(br#"{"id": 7, "method": "pay"}"#, &["$.id".parse()?]);
/// assert_eq!(form.as_deref(), Some(br#"{"method":"pay"}"#.as_slice()));
/// # Ok::<(), semel_http::json::MalformedPath>(())
/// ```
pub fn canonical(text: &[u8], left_out: &[JsonPath]) -> Option<Vec<u8>> {
    // Once for all of it: everything below reads bytes, and ends its pieces at ASCII.
    str::from_utf8(text).ok()?;
    let mut reading = Reading {
        rest: text,
        written: Vec::with_capacity(text.len()),
        containers: Containers::new(left_out),
        rebuilt: Rebuilt::default(),
    };
    reading.whole()?;
    Some(reading.rebuilt.emit(reading.written))
}

/// What of a JSON text is compared: its canonical form, without what `left_out` names; or, if it has none, its bytes.
/// The first member names which of the two it is, and belongs to what is digested: no raw text may pass for the
/// canonical form of another.
pub(crate) fn comparable<'a>(text: &'a [u8], left_out: &[JsonPath]) -> (&'static str, Cow<'a, [u8]>) {
    match canonical(text, left_out) {
        Some(form) => ("json", Cow::Owned(form)),
        None => ("raw", Cow::Borrowed(text)),
    }
}

/// A text, half read.
struct Reading<'a> {
    rest: &'a [u8],
    /// The canonical form of what was read, in the order in which it was read.
    written: Vec<u8>,
    /// The objects and arrays that are open.
    containers: Containers<'a>,
    /// The closed ones that must be written in another order, or without some of their members.
    rebuilt: Rebuilt,
}

impl Reading<'_> {
    fn whole(&mut self) -> Option<()> {
        loop {
            if self.begin_value()? == Begun::Opened {
                continue;
            }
            // A value has ended, and with it perhaps the containers that it was the last of.
            loop {
                if self.containers.is_empty() {
                    self.skip_space();
                    return self.rest.is_empty().then_some(());
                }
                self.containers.end_child(self.written.len());
                if self.after_child()? == Begun::Opened {
                    break;
                }
            }
        }
    }

    /// Reads a scalar or an empty container, or opens a container up to its first child's value.
    fn begin_value(&mut self) -> Option<Begun> {
        self.skip_space();
        match self.rest.first()? {
            b'{' => self.open(Shape::Object),
            b'[' => self.open(Shape::Array),
            b'"' => {
                self.rest = text::string(self.rest, &mut self.written, self.containers.is_left_out())?;
                Some(Begun::Ended)
            }
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => {
                self.rest = number::number(self.rest, &mut self.written, self.containers.is_left_out())?;
                Some(Begun::Ended)
            }
        }
    }

    fn literal(&mut self, word: &[u8]) -> Option<Begun> {
        self.rest = self.rest.strip_prefix(word)?;
        self.written.extend_from_slice(word);
        Some(Begun::Ended)
    }

    fn open(&mut self, shape: Shape) -> Option<Begun> {
        if self.containers.depth() >= DEPTH_MAX {
            return None;
        }
        self.containers.open(shape, self.written.len());
        self.take(shape.opening())?;
        self.skip_space();
        if self.rest.first() == Some(&shape.closing()) {
            return self.close(shape);
        }
        self.begin_child(shape)
    }

    fn close(&mut self, shape: Shape) -> Option<Begun> {
        self.take(shape.closing())?;
        self.containers.close(&self.written, &mut self.rebuilt)?;
        Some(Begun::Ended)
    }

    /// Reads up to where the child's value begins.
    fn begin_child(&mut self, shape: Shape) -> Option<Begun> {
        let from = self.written.len();
        if shape == Shape::Object {
            self.skip_space();
            self.rest = text::string(self.rest, &mut self.written, false)?;
            let name_to = self.written.len();
            self.skip_space();
            self.take(b':')?;
            self.containers.begin_member(from, name_to, &self.written)?;
        } else {
            self.containers.begin_element(from);
        }
        Some(Begun::Opened)
    }

    /// Reads what comes after a child: the next one, or the end.
    fn after_child(&mut self) -> Option<Begun> {
        self.skip_space();
        let shape = self.containers.shape()?;
        if self.rest.first() == Some(&b',') {
            self.take(b',')?;
            return self.begin_child(shape);
        }
        self.close(shape)
    }

    /// Takes one byte of punctuation over.
    fn take(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        self.written.push(byte);
        (*first == byte).then_some(())
    }

    fn skip_space(&mut self) {
        while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }
}

/// How far a value was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    /// To its end.
    Ended,
    /// To where a child's value begins.
    Opened,
}

/// What kind of container.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    Array,
}

impl Shape {
    pub(super) const fn opening(self) -> u8 {
        match self {
            Self::Object => b'{',
            Self::Array => b'[',
        }
    }

    pub(super) const fn closing(self) -> u8 {
        match self {
            Self::Object => b'}',
            Self::Array => b']',
        }
    }
}

#[cfg(test)]
mod tests;
