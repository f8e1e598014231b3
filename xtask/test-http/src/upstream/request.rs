//! How the service reads requests: leniently, as many do, so that whatever can be read in two ways is.

use tokio::io::AsyncRead;

use crate::buffered::Buffered;

/// A request's head.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: String,
    fields: Vec<(String, String)>,
    pub(super) raw: Vec<u8>,
}

/// A body, as far as it came.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) body: Vec<u8>,
    pub(super) trailers: Vec<u8>,
    pub(super) is_whole: bool,
}

impl Request {
    /// The next head; `None` at the end, or if what comes is none.
    pub(super) async fn read<R: AsyncRead + Unpin>(line: &mut Buffered<R>) -> Option<Self> {
        let mut raw = Vec::new();
        loop {
            let next = line.line().await;
            let is_end = matches!(next.as_slice(), b"\r\n" | b"\n");
            raw.extend_from_slice(&next);
            if next.is_empty() || !next.ends_with(b"\n") {
                return (!raw.is_empty()).then(|| Self::parse(raw));
            }
            // Empty lines before a request are skipped, as they should be.
            if is_end && raw.len() > next.len() {
                return Some(Self::parse(raw));
            }
            if is_end {
                raw.clear();
            }
        }
    }

    fn parse(raw: Vec<u8>) -> Self {
        let text = String::from_utf8_lossy(&raw).into_owned();
        let mut lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
        let mut words = lines.next().unwrap_or_default().split_whitespace();
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default().to_owned();
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields = fields.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        let fields = fields.collect();
        Self { method, target, fields, raw }
    }

    pub(super) fn field(&self, name: &str) -> Option<String> {
        self.fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
    }

    /// Whether its head came to its end.
    pub(super) fn is_whole(&self) -> bool {
        self.raw.ends_with(b"\n\r\n") || self.raw.ends_with(b"\n\n")
    }

    /// The body: chunks if anything speaks of them, or else the last length that is a number.
    pub(super) async fn body<R: AsyncRead + Unpin>(&self, line: &mut Buffered<R>) -> Read {
        let is_chunked = |(name, value): &(String, String)| {
            name == "transfer-encoding" && value.to_ascii_lowercase().contains("chunked")
        };
        if self.fields.iter().any(is_chunked) {
            return chunks(line).await;
        }
        let lengths = self.fields.iter().filter(|(name, _)| name == "content-length");
        let length = lengths.filter_map(|(_, value)| value.parse::<usize>().ok()).next_back().unwrap_or(0);
        let body = line.exactly(length).await;
        Read { is_whole: body.len() == length, body, trailers: Vec::new() }
    }
}

async fn chunks<R: AsyncRead + Unpin>(line: &mut Buffered<R>) -> Read {
    let mut read = Read { body: Vec::new(), trailers: Vec::new(), is_whole: false };
    loop {
        let size = line.line().await;
        let size = String::from_utf8_lossy(&size).into_owned();
        let size = size.split(';').next().unwrap_or_default().trim();
        let Ok(size) = usize::from_str_radix(size, 16) else { return read };
        if size == 0 {
            break;
        }
        let chunk = line.exactly(size).await;
        let is_short = chunk.len() < size;
        read.body.extend(chunk);
        if is_short || !line.line().await.ends_with(b"\n") {
            return read;
        }
    }
    loop {
        let trailer = line.line().await;
        if matches!(trailer.as_slice(), b"\r\n" | b"\n") {
            read.is_whole = true;
            return read;
        }
        if trailer.is_empty() {
            return read;
        }
        read.trailers.extend(trailer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> Vec<(String, Vec<u8>, bool)> {
        let mut line = Buffered::new(bytes);
        let mut all = Vec::new();
        while let Some(request) = Request::read(&mut line).await {
            let read = request.body(&mut line).await;
            all.push((request.target, read.body, read.is_whole));
        }
        all
    }

    #[tokio::test]
    async fn chunks_go_before_a_length_as_the_standard_says() {
        let both = b"POST /a HTTP/1.1\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
        let targets: Vec<_> = read(both).await.into_iter().map(|(target, ..)| target).collect();
        assert_eq!(targets, ["/a", "/b"]);
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_not_whole() {
        let short = read(b"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc").await;
        assert_eq!(short, [("/a".to_owned(), b"abc".to_vec(), false)]);
        let chunked = b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n";
        assert_eq!(read(chunked).await, [("/a".to_owned(), b"abc".to_vec(), false)]);
    }
}
