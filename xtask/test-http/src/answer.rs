//! A response as it came, and what tests say about it.

use std::fmt;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::io::AsyncRead;

use crate::buffered::Buffered;

/// A response.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its status; 0 if its first line is not a status line.
    pub status: u16,
    /// Its headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body, as far as it came.
    pub body: Vec<u8>,
    /// What follows the last chunk.
    pub trailers: Vec<(String, String)>,
    /// How its body ended.
    pub ending: Ending,
    /// How many bytes it took, interim responses before it included.
    pub bytes: usize,
}

/// How the body of a response ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// As its head said.
    Whole,
    /// With the end of the connection, as responses without a length do.
    Closed,
    /// Before its end.
    #[default]
    CutShort,
}

impl Answer {
    /// The next head; `None` if the connection ended before it did.
    pub(crate) async fn read_head(from: &mut Buffered<impl AsyncRead + Unpin>) -> Option<Self> {
        let first = line(from).await?;
        let status = first.strip_prefix("HTTP/").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        let headers = read_headers(from).await?;
        Some(Self { status: status.unwrap_or(0), headers, ..Self::default() })
    }

    /// The next response after interim ones; `None` if the connection ended before its head did.
    pub(crate) async fn read_final(
        from: &mut Buffered<impl AsyncRead + Unpin>,
        method: &str,
    ) -> Option<Self> {
        let start = from.used();
        loop {
            let mut answer = Self::read_head(from).await?;
            if !(100..200).contains(&answer.status) || answer.status == 101 {
                answer.read_body(from, method).await;
                answer.bytes = from.used() - start;
                return Some(answer);
            }
        }
    }

    /// Reads the body that belongs to this head.
    pub(crate) async fn read_body(&mut self, from: &mut Buffered<impl AsyncRead + Unpin>, method: &str) {
        self.ending = Ending::Whole;
        if method == "HEAD" || matches!(self.status, 100..200 | 204 | 304) {
            return;
        }
        if self.status == 0 {
            self.ending = Ending::CutShort;
        } else if self.first("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
        {
            if self.read_chunks(from).await.is_none() {
                self.ending = Ending::CutShort;
            }
        } else if let Some(length) = self.first("content-length") {
            let length = length.parse().unwrap_or(usize::MAX);
            self.body = from.exactly(length).await;
            if self.body.len() < length {
                self.ending = Ending::CutShort;
            }
        } else {
            self.body = from.remaining().await;
            self.ending = Ending::Closed;
        }
    }

    async fn read_chunks(&mut self, from: &mut Buffered<impl AsyncRead + Unpin>) -> Option<()> {
        while let Some(chunk) = read_chunk(from, &mut self.body).await? {
            self.body.extend(chunk);
        }
        self.trailers = read_headers(from).await?;
        Some(())
    }

    /// The first response in these bytes, interim ones left out; `None` if not even a head is there.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        at_once(Self::read_final(&mut Buffered::new(bytes), "GET")).flatten()
    }

    /// Whether all of it came.
    pub fn is_whole(&self) -> bool {
        self.ending != Ending::CutShort
    }

    /// Whether the connection is closed after it.
    pub fn is_last(&self) -> bool {
        self.ending != Ending::Whole
            || self.first("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The first value of a header.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// All values of a header.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str()).collect()
    }

    /// The only value of a header; panics if there are more.
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() <= 1, "{name} is there {} times: {self:?}", all.len());
        all.first().copied()
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or("(not UTF-8)")
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{} with a body that is not JSON: {}", self.status, self.text()))
    }

    /// Must be a 200 with JSON.
    pub fn ok_json(&self) -> Result<Value> {
        ensure!(self.status == 200, "answered with {}: {}", self.status, self.text());
        self.json()
    }

    /// The media type of the body, without parameters.
    pub fn media_type(&self) -> &str {
        self.first("content-type").and_then(|kind| kind.split(';').next()).unwrap_or_default().trim()
    }

    /// Whether it is a stored answer.
    pub fn is_replay(&self) -> bool {
        self.all("idempotent-replayed") == ["true"]
    }

    /// The code of a refusal, if it is one.
    pub fn code(&self) -> Option<String> {
        let is_problem = self.all("content-type") == ["application/problem+json"];
        let body: Value = serde_json::from_slice(&self.body).ok().filter(|_| is_problem)?;
        body.get("code")?.as_str().map(str::to_owned)
    }

    /// The members of a refusal.
    #[track_caller]
    pub fn problem(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        self.json().expect("a problem is JSON")
    }

    /// It must be this refusal, well formed.
    #[track_caller]
    #[expect(
        clippy::indexing_slicing,
        reason = "a member that is missing is null, which is never right here"
    )]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.code().as_deref()), (status, Some(code)), "{self:?}");
        let problem = self.problem();
        assert_eq!(problem["status"], status, "{self:?}");
        assert!(problem["type"].as_str().is_some_and(|kind| kind.ends_with(code)), "{self:?}");
        for member in ["title", "detail"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "no {member}: {self:?}");
        }
        assert_eq!(self.header("cache-control"), Some("no-store"), "{self:?}");
        assert_eq!(self.all("idempotent-replayed"), [""; 0], "{self:?}");
        problem
    }

    /// It must be a response of the service to this run, and no replay.
    #[track_caller]
    pub fn ran(&self, status: u16) -> &Self {
        assert_eq!((self.status, self.code()), (status, None), "{self:?}");
        assert!(!self.is_replay(), "{self:?}");
        assert!(self.is_whole(), "{self:?}");
        self
    }

    /// It must be a replay of that response.
    #[track_caller]
    pub fn replays(&self, first: &Self) -> &Self {
        assert!(self.is_replay(), "{self:?}");
        assert_eq!(self.status, first.status, "{self:?}");
        assert!(self.body == first.body, "another body than the first: {self:?}, {first:?}");
        assert!(self.is_whole(), "{self:?}");
        self
    }

    /// How many seconds it says to wait.
    #[track_caller]
    pub fn retry_after(&self) -> u64 {
        let header = self.header("retry-after").expect("there is a Retry-After");
        header.parse().expect("Retry-After is in seconds")
    }
}

/// Every whole response in these bytes, and what follows the last of them.
pub fn answers(bytes: &[u8]) -> (Vec<Answer>, Vec<u8>) {
    let (mut all, mut rest) = (Vec::new(), bytes);
    while let Some(answer) = Answer::parse(rest).filter(Answer::is_whole) {
        rest = rest.get(answer.bytes..).unwrap_or_default();
        all.push(answer);
    }
    (all, rest.to_vec())
}

/// The value of a future that never waits.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// The next line without its end; `None` if the connection ended before it.
pub(crate) async fn line(from: &mut Buffered<impl AsyncRead + Unpin>) -> Option<String> {
    let line = from.up_to(b"\n").await?;
    Some(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// Headers up to the empty line after them.
pub(crate) async fn read_headers(
    from: &mut Buffered<impl AsyncRead + Unpin>,
) -> Option<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = line(from).await?;
        let Some((name, value)) = line.split_once(':') else { return line.is_empty().then_some(headers) };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

/// The next chunk; `Some(None)` for the last, before its trailers. What came of one that breaks off goes into `partial`.
pub(crate) async fn read_chunk(
    from: &mut Buffered<impl AsyncRead + Unpin>,
    partial: &mut Vec<u8>,
) -> Option<Option<Vec<u8>>> {
    let size = line(from).await?;
    let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16).ok()?;
    if size == 0 {
        return Some(None);
    }
    let chunk = from.exactly(size).await;
    if chunk.len() < size || !line(from).await?.is_empty() {
        partial.extend(chunk);
        return None;
    }
    Some(Some(chunk))
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{} ({:?}, {} bytes)", self.status, self.ending, self.body.len())?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        let shown = self.body.get(..self.body.len().min(400)).unwrap_or_default();
        write!(f, "\n{}", String::from_utf8_lossy(shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_a_row_are_told_apart() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 204 No\r\n\r\n\
            HTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nHTTP/1.1 2";
        let (answers, rest) = answers(bytes);
        let found: Vec<_> = answers.iter().map(|answer| (answer.status, answer.body.as_slice())).collect();
        assert_eq!(found, [(200, b"ab".as_slice()), (204, b""), (201, b"abc")]);
        assert_eq!(rest, b"HTTP/1.1 2");
    }

    #[test]
    fn an_answer_is_read_whole_in_chunks_and_by_length() {
        let bytes: &[u8] = b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
            HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nde";
        let mut bytes = Buffered::new(bytes);
        let mut next = || at_once(Answer::read_final(&mut bytes, "GET")).flatten();
        let first = next().unwrap();
        assert_eq!((first.status, first.text()), (200, "abc"));
        let second = next().unwrap();
        assert_eq!((second.status, second.text()), (404, "de"));
        assert!(next().is_none());
    }

    #[test]
    fn an_answer_that_breaks_off_is_not_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        for cut in 0..whole.len() {
            assert!(!Answer::parse(&whole[..cut]).is_some_and(|answer| answer.is_whole()), "{cut}");
        }
        assert!(Answer::parse(whole).unwrap().is_whole());
    }

    #[test]
    fn a_refusal_says_its_code() {
        let headers = vec![("content-type".to_owned(), "application/problem+json".to_owned())];
        let body = br#"{"status":409,"code":"in_flight"}"#.to_vec();
        let answer = Answer { headers, body, ..Answer::default() };
        assert_eq!(answer.code().as_deref(), Some("in_flight"));
    }
}
