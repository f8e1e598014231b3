//! What a server answers.

use std::io::{BufRead, Read};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// More than any answer here has.
const BODY_BYTES_MAX: usize = 64 << 20;
const LINE_BYTES_MAX: u64 = 64 << 10;

/// One answer.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its fields, in order.
    pub fields: Vec<(String, String)>,
    /// All of its body; of a stream of events, nothing.
    pub body: Vec<u8>,
}

impl Answer {
    /// The first field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body, as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{} with no JSON: {}", self.status, self.text()))
    }

    /// The kind of body, without parameters.
    pub fn media_type(&self) -> &str {
        self.field("content-type").and_then(|kind| kind.split(';').next()).unwrap_or_default().trim()
    }

    /// Must be a 200 with JSON.
    pub fn fine(&self) -> Result<Value> {
        ensure!(self.status == 200, "answered with {}: {}", self.status, self.text());
        self.json()
    }

    /// Whether the connection is closed after it.
    pub(super) fn is_last(&self) -> bool {
        self.is_stream() || self.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    fn is_stream(&self) -> bool {
        self.media_type() == "text/event-stream"
    }

    /// Reads one from a connection.
    pub(super) fn read(from: &mut impl BufRead, method: &str) -> Result<Self> {
        loop {
            let mut answer = head(from)?;
            if (100..200).contains(&answer.status) {
                continue;
            }
            if method != "HEAD" && !matches!(answer.status, 204 | 304) && !answer.is_stream() {
                answer.body = answer.read_body(from)?;
            }
            return Ok(answer);
        }
    }

    fn read_body(&self, from: &mut impl BufRead) -> Result<Vec<u8>> {
        if self.field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return chunks(from);
        }
        let mut body = Vec::new();
        match self.field("content-length") {
            Some(length) => {
                let length: usize = length.parse().context("a length is a number")?;
                ensure!(length <= BODY_BYTES_MAX, "{length} bytes are too many");
                body.resize(length, 0);
                from.read_exact(&mut body)?;
            }
            None => drop(from.take(BODY_BYTES_MAX as u64).read_to_end(&mut body)?),
        }
        Ok(body)
    }
}

fn line(from: &mut impl BufRead) -> Result<String> {
    let mut line = Vec::new();
    from.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    ensure!(line.ends_with(b"\n"), "the connection ended in a line");
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn head(from: &mut impl BufRead) -> Result<Answer> {
    let first = line(from)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("{first:?} is no status line"))?;
    let mut fields = Vec::new();
    loop {
        let line = line(from)?;
        if line.is_empty() {
            return Ok(Answer { status, fields, body: Vec::new() });
        }
        let Some((name, value)) = line.split_once(':') else { bail!("{line:?} is no field") };
        fields.push((name.to_owned(), value.trim().to_owned()));
    }
}

fn chunks(from: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(line(from)?.split(';').next().unwrap_or_default(), 16)?;
        ensure!(body.len() + size <= BODY_BYTES_MAX, "the body is too large");
        let start = body.len();
        body.resize(start + size, 0);
        from.read_exact(body.get_mut(start..).unwrap_or_default())?;
        ensure!(line(from)?.is_empty(), "a chunk is longer than it said");
        if size == 0 {
            return Ok(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_whole_in_chunks_and_by_length() {
        let mut bytes: &[u8] = b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
            HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nde";
        let first = Answer::read(&mut bytes, "GET").unwrap();
        assert_eq!((first.status, first.text().as_str()), (200, "abc"));
        let second = Answer::read(&mut bytes, "GET").unwrap();
        assert_eq!((second.status, second.text().as_str()), (404, "de"));
        assert!(Answer::read(&mut bytes, "GET").is_err());
    }
}
