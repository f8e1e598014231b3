//! Puts what was written in the order of reading into the order that counts, moving each byte once.

use std::ops::Range;

use super::canonical::Shape;

/// A stretch of what was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The containers that must be put together anew.
#[derive(Default)]
pub(super) struct Rebuilt {
    containers: Vec<Container>,
    /// The children of all of them, each container's in its order.
    pieces: Vec<Piece>,
}

struct Container {
    shape: Shape,
    at: Piece,
    pieces: Range<usize>,
}

/// What is to be copied next.
enum Copy {
    Stretch(Piece),
    Byte(u8),
}

impl Rebuilt {
    pub(super) fn push(&mut self, shape: Shape, at: Piece, pieces: impl Iterator<Item = Piece>) {
        let from = self.pieces.len();
        self.pieces.extend(pieces);
        self.containers.push(Container { shape, at, pieces: from..self.pieces.len() });
    }

    /// What was written, with every container put together anew.
    pub(super) fn emit(mut self, written: Vec<u8>) -> Vec<u8> {
        if self.containers.is_empty() {
            return written;
        }
        self.containers.sort_unstable_by_key(|container| container.at.from);
        let mut emitted = Vec::with_capacity(written.len());
        // A list and no recursion: moving each container's bytes once for every container around it would take
        // time by the depth.
        let mut left = vec![Copy::Stretch(Piece { from: 0, to: written.len() })];
        while let Some(next) = left.pop() {
            match next {
                Copy::Byte(byte) => emitted.push(byte),
                Copy::Stretch(piece) => match self.first_in(piece) {
                    Some(container) => {
                        left.push(Copy::Stretch(Piece { from: container.at.to, to: piece.to }));
                        self.list(container, &mut left);
                        emitted.extend_from_slice(
                            written.get(piece.from..container.at.from).unwrap_or_default(),
                        );
                    }
                    None => emitted.extend_from_slice(written.get(piece.from..piece.to).unwrap_or_default()),
                },
            }
        }
        emitted
    }

    /// The first container that begins in `piece`.
    fn first_in(&self, piece: Piece) -> Option<&Container> {
        let at = self.containers.partition_point(|container| container.at.from < piece.from);
        self.containers.get(at).filter(|container| container.at.from < piece.to)
    }

    /// Lists a container's parts, the last one first.
    fn list(&self, container: &Container, left: &mut Vec<Copy>) {
        left.push(Copy::Byte(container.shape.closing()));
        let pieces = self.pieces.get(container.pieces.clone()).unwrap_or_default();
        for (index, piece) in pieces.iter().enumerate().rev() {
            left.push(Copy::Stretch(*piece));
            if index > 0 {
                left.push(Copy::Byte(b','));
            }
        }
        left.push(Copy::Byte(container.shape.opening()));
    }
}
