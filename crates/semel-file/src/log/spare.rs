//! The segment that is ready before it is needed: so that nobody waits for it, and so that a full disk is noticed while there
//! is still room for what is running.

use std::io;
use std::sync::Arc;

use super::segment::Segment;
use crate::error::is_full;

/// Where the next segment stands.
#[derive(Default)]
pub(crate) enum Spare {
    /// Nobody asked for one.
    #[default]
    None,
    /// One is to be made, of this number and size.
    Wanted(Wanted),
    /// One is there.
    Ready(Arc<Segment>, u32),
    /// The disk has no room for it. It is tried again until it has.
    NoRoom(Wanted, Arc<str>),
    /// The disk failed.
    Failed(Arc<str>),
}

/// A segment to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) number: u32,
    pub(crate) bytes: u32,
}

/// Why there is no next segment.
#[derive(Clone, Debug)]
pub(crate) enum NoSpare {
    /// The disk is full.
    NoRoom(Arc<str>),
    /// The disk failed.
    Failed(Arc<str>),
}

impl Spare {
    /// What became of making one.
    pub(crate) fn made(wanted: Wanted, made: io::Result<Segment>) -> Self {
        match made {
            Ok(segment) => Self::Ready(Arc::new(segment), wanted.bytes),
            Err(error) if is_full(&error) => Self::NoRoom(wanted, error.to_string().into()),
            Err(error) => {
                Self::Failed(format!("segment {:08x} could not be prepared: {error}", wanted.number).into())
            }
        }
    }

    /// The segment to be made, if there is one.
    pub(crate) fn wanted(&self) -> Option<Wanted> {
        match self {
            Self::Wanted(wanted) | Self::NoRoom(wanted, _) => Some(*wanted),
            Self::None | Self::Ready(..) | Self::Failed(_) => None,
        }
    }
}
