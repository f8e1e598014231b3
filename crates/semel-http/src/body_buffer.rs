//! The bytes of a body while it is read, in room that is reserved for them.

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

use crate::budget::{NoRoom, Reserved};

/// Pieces below this are copied together: many small ones would pin far more memory than they have bytes.
const SMALL_PIECE: usize = 1 << 10;

/// What was read of a body so far. A body that came in one piece is never copied.
#[derive(Debug)]
pub(crate) struct BodyBuffer {
    /// Most bodies come in one piece, and need no list.
    pieces: SmallVec<[Bytes; 1]>,
    /// Small pieces that came after those.
    tail: BytesMut,
    length: usize,
    reserved: Reserved,
}

impl BodyBuffer {
    /// A buffer that takes its room from `reserved`.
    pub(crate) fn new(reserved: Reserved) -> Self {
        Self { pieces: SmallVec::new(), tail: BytesMut::new(), length: 0, reserved }
    }

    /// How many bytes were read.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Adds a piece. It is added also if there is no room for it, because it was read; nothing more should be.
    pub(crate) async fn push(&mut self, piece: Bytes) -> Result<(), NoRoom> {
        let taken = self.reserved.take_in_time(piece.len()).await;
        self.length = self.length.saturating_add(piece.len());
        let is_first = self.pieces.is_empty() && self.tail.is_empty();
        if !is_first && piece.len() < SMALL_PIECE {
            self.tail.extend_from_slice(&piece);
        } else {
            self.end_tail();
            self.pieces.push(piece);
        }
        taken
    }

    /// The whole body as one, and the room that it has.
    pub(crate) fn into_whole(mut self) -> (Bytes, Reserved) {
        self.end_tail();
        let bytes = match self.pieces.len() {
            0 | 1 => self.pieces.pop().unwrap_or_default(),
            _ => self.joined(),
        };
        (bytes, self.reserved)
    }

    /// What was read, in pieces that are counted until the last reference to each is gone.
    pub(crate) fn into_pieces(mut self) -> Vec<Bytes> {
        self.end_tail();
        let mut pieces = std::mem::take(&mut self.pieces);
        for piece in &mut pieces {
            let room = self.reserved.split(piece.len());
            *piece = room.attach_always(std::mem::take(piece));
        }
        pieces.into_vec()
    }

    fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push(self.tail.split().freeze());
        }
    }

    fn joined(&self) -> Bytes {
        let mut joined = BytesMut::with_capacity(self.length);
        for piece in &self.pieces {
            joined.extend_from_slice(piece);
        }
        joined.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(pieces: &[usize]) -> (BodyBuffer, Vec<u8>) {
        let (mut buffer, mut all) = (BodyBuffer::new(Reserved::default()), Vec::new());
        for (number, length) in pieces.iter().enumerate() {
            let piece = vec![u8::try_from(number % 251).unwrap(); *length];
            all.extend_from_slice(&piece);
            buffer.push(Bytes::from(piece)).await.unwrap();
        }
        (buffer, all)
    }

    #[tokio::test]
    async fn a_body_is_the_same_in_whatever_pieces_it_comes() {
        let cases: [&[usize]; 6] =
            [&[], &[1], &[5_000], &[1, 1, 1], &[2_000, 3, 4, 2_000, 5], &[1, 9_000, 1]];
        for pieces in cases {
            let (buffer, all) = read(pieces).await;
            assert_eq!(buffer.len(), all.len(), "{pieces:?}");
            assert_eq!(buffer.into_whole().0, all, "{pieces:?}");
            assert_eq!(read(pieces).await.0.into_pieces().concat(), all, "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn many_small_pieces_are_kept_as_few() {
        let (buffer, _) = read(&vec![1; 100_000]).await;
        assert!(buffer.pieces.len() <= 1 && buffer.tail.capacity() <= 200_000, "{buffer:?}");
    }

    #[tokio::test]
    async fn a_body_in_one_piece_is_not_copied() {
        let piece = Bytes::from(vec![7; 100]);
        let mut buffer = BodyBuffer::new(Reserved::default());
        buffer.push(piece.clone()).await.unwrap();
        assert_eq!(buffer.into_whole().0.as_ptr(), piece.as_ptr());
    }
}
