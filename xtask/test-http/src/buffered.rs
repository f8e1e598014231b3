//! Bytes of a connection as they come, with what was read ahead.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of what was used up is kept before it is forgotten.
const USED_BYTES_MAX: usize = 64 << 10;

/// A reader, and what was read of it ahead.
#[derive(Debug)]
pub(crate) struct Buffered<R> {
    pub(crate) reader: R,
    bytes: Vec<u8>,
    at: usize,
    forgotten: usize,
}

impl<R> Buffered<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, bytes: Vec::new(), at: 0, forgotten: 0 }
    }

    /// What was read and not used yet.
    pub(crate) fn ahead(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// How many bytes were used since the start.
    pub(crate) fn used(&self) -> usize {
        self.forgotten + self.at
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let taken = self.ahead().get(..count).unwrap_or_default().to_vec();
        self.at += taken.len();
        taken
    }
}

impl<R: AsyncRead + Unpin> Buffered<R> {
    /// Reads some more; 0 at the end.
    pub(crate) async fn more(&mut self) -> io::Result<usize> {
        if self.at > USED_BYTES_MAX {
            self.bytes.drain(..self.at);
            self.forgotten += std::mem::take(&mut self.at);
        }
        self.reader.read_buf(&mut self.bytes).await
    }

    /// Everything up to and with these bytes; `None`, and nothing is used, if they do not come before the end.
    pub(crate) async fn up_to(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        let mut searched: usize = 0;
        loop {
            let from = searched.saturating_sub(end.len());
            let rest = self.ahead().get(from..).unwrap_or_default();
            if let Some(found) = rest.windows(end.len()).position(|here| here == end) {
                return Some(self.take(from + found + end.len()));
            }
            searched = self.ahead().len();
            if !self.more().await.is_ok_and(|count| count > 0) {
                return None;
            }
        }
    }

    /// Up to a line feed, which is part of it; what there is, if the end comes before.
    pub(crate) async fn line(&mut self) -> Vec<u8> {
        match self.up_to(b"\n").await {
            Some(line) => line,
            None => self.take(self.ahead().len()),
        }
    }

    /// Exactly so many; fewer only at the end.
    pub(crate) async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.ahead().len() < count {
            if !self.more().await.is_ok_and(|count| count > 0) {
                break;
            }
        }
        self.take(count.min(self.ahead().len()))
    }

    /// Everything up to the end.
    pub(crate) async fn remaining(&mut self) -> Vec<u8> {
        self.exactly(usize::MAX).await
    }
}
