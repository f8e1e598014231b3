//! Bytes to lines, with a bound.

use bytes::{Bytes, BytesMut};
use semel::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is asked for at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Where lines come from.
pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;

/// The lines of an input, as far as it was read.
pub(super) struct Lines {
    name: Box<str>,
    input: Input,
    buffer: BytesMut,
    /// How much of the buffer holds no end of a line.
    searched: usize,
    /// Where the buffer begins, in bytes of the input.
    at: u64,
    /// How many lines there were before the buffer, empty ones included. Counts from where the reading began.
    number: u64,
    line_bytes_max: usize,
}

/// One line that says something.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The line, without its end.
    pub(super) text: Bytes,
    /// Where the next one begins, in bytes of the input.
    pub(super) end: u64,
    /// Its number, from 1.
    pub(super) number: u64,
}

impl Lines {
    /// The lines of an input that stands at this byte.
    pub(super) fn new(name: &str, input: Input, at: u64, line_bytes_max: usize) -> Self {
        Self { name: name.into(), input, buffer: BytesMut::new(), searched: 0, at, number: 0, line_bytes_max }
    }

    /// From now on, lines may be this long.
    pub(super) fn set_line_bytes_max(&mut self, bytes: usize) {
        self.line_bytes_max = bytes;
    }

    /// The next line, as far as the input was read.
    pub(super) fn next(&mut self) -> Result<Option<Line>> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(found) = unsearched.iter().position(|&byte| byte == b'\n') else {
                self.searched = self.buffer.len();
                self.checked(self.buffer.len())?;
                return Ok(None);
            };
            let length = self.searched.saturating_add(found);
            self.checked(length)?;
            if let Some(line) = self.cut(length.saturating_add(1)) {
                return Ok(Some(line));
            }
        }
    }

    /// The last line, which has no end. Only at the end of the input.
    pub(super) fn rest(&mut self) -> Option<Line> {
        self.cut(self.buffer.len())
    }

    /// Reads on; `false` at the end of the input. May be dropped: nothing is lost.
    pub(super) async fn read(&mut self) -> Result<bool> {
        self.buffer.reserve(CHUNK_BYTES);
        let read = self.input.read_buf(&mut self.buffer).await.map_err(|error| {
            let message = format!("cannot read `{}`; see that it can be read, then start again", self.name);
            Error::new(ErrorKind::Unavailable, message).caused_by(error)
        })?;
        Ok(read > 0)
    }

    /// How far the input was read, in bytes.
    pub(super) fn end(&self) -> u64 {
        self.at.saturating_add(self.buffer.len() as u64)
    }

    /// Cuts a line off the buffer, its end included; `None` if it says nothing.
    fn cut(&mut self, length: usize) -> Option<Line> {
        let mut text = self.buffer.split_to(length.min(self.buffer.len())).freeze();
        self.at = self.at.saturating_add(text.len() as u64);
        self.number = self.number.saturating_add(1);
        self.searched = 0;
        for end in [b"\n", b"\r"] {
            if text.ends_with(end) {
                text.truncate(text.len().saturating_sub(1));
            }
        }
        let says_something = !text.trim_ascii().is_empty();
        says_something.then_some(Line { text, end: self.at, number: self.number })
    }

    /// Refuses a line that is too long. Nothing of it is thrown away, so that it is refused the next time as well.
    fn checked(&self, length: usize) -> Result<()> {
        if length <= self.line_bytes_max {
            return Ok(());
        }
        let message = format!(
            "the line of `{}` that begins at byte {} is longer than {} bytes: shorten it, or raise line_bytes_max",
            self.name, self.at, self.line_bytes_max
        );
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &'static [u8], line_bytes_max: usize) -> (Vec<(String, u64, u64)>, Option<String>) {
        let mut lines = Lines::new("in", Box::new(text), 0, line_bytes_max);
        let mut said = Vec::new();
        loop {
            match lines.next() {
                Ok(Some(line)) => said.push(line),
                Ok(None) if lines.read().await.unwrap() => {}
                Ok(None) => break said.extend(lines.rest()),
                Err(error) => return (plain(said), Some(error.to_string())),
            }
        }
        (plain(said), None)
    }

    fn plain(lines: Vec<Line>) -> Vec<(String, u64, u64)> {
        let plain = |line: Line| (String::from_utf8(line.text.to_vec()).unwrap(), line.end, line.number);
        lines.into_iter().map(plain).collect()
    }

    #[tokio::test]
    async fn every_line_that_says_something_is_handed_out_with_where_it_ends() {
        let (lines, error) = all(b"one\n\n two\r\n  \nthree", 99).await;
        let expected = [("one", 4, 1), (" two", 11, 3), ("three", 19, 5)];
        assert_eq!(lines, expected.map(|(text, end, number)| (text.to_owned(), end, number)));
        assert_eq!(error, None);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_named_also_when_its_end_is_not_yet_there() {
        for text in [&b"ok\n12345678\nok\n"[..], b"ok\n12345678"] {
            let (lines, error) = all(text, 7).await;
            assert_eq!(lines.len(), 1);
            assert!(error.unwrap().contains("begins at byte 3 is longer than 7 bytes"));
            assert_eq!(all(text, 8).await.1, None);
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_refused_again_and_never_passed_over() {
        let mut lines = Lines::new("in", Box::new(&b"12345678\nok\n"[..]), 0, 7);
        lines.read().await.unwrap();
        for _ in 0..3 {
            lines.next().unwrap_err();
        }
    }
}
