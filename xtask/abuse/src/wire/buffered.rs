//! Bytes of a line as they come, with what was read ahead.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of what was used up is kept before it is forgotten.
const USED_BYTES_MAX: usize = 64 << 10;

/// A reader, and what was read of it ahead.
pub(crate) struct Buffered<R> {
    reader: R,
    bytes: Vec<u8>,
    at: usize,
}

impl<R: AsyncRead + Unpin> Buffered<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, bytes: Vec::new(), at: 0 }
    }

    /// What was read and not used yet.
    fn ahead(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Reads some more; 0 at the end.
    pub(crate) async fn more(&mut self) -> io::Result<usize> {
        if self.at > USED_BYTES_MAX {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.reader.read_buf(&mut self.bytes).await
    }

    /// Up to a line feed, which is part of it; what there is, if the end comes before.
    pub(crate) async fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            let rest = self.ahead().get(searched..).unwrap_or_default();
            if let Some(found) = rest.iter().position(|byte| *byte == b'\n') {
                return Ok(self.take(searched + found + 1));
            }
            searched = self.ahead().len();
            if self.more().await? == 0 {
                return Ok(self.take(searched));
            }
        }
    }

    /// Exactly so many; fewer only at the end.
    pub(crate) async fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.ahead().len() < count {
            if self.more().await? == 0 {
                break;
            }
        }
        Ok(self.take(count.min(self.ahead().len())))
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let taken = self.ahead().get(..count).unwrap_or_default().to_vec();
        self.at += taken.len();
        taken
    }
}
