//! The segment that is ready before it is needed: so that no caller waits for it, and so that a disk that has no room for it
//! is noticed while there is still room for what is running.

use std::io;
use std::sync::Arc;

use super::segment::Segment;
use crate::error::is_full;
use crate::format::name;

/// Where the next segment stands.
#[derive(Default)]
pub(crate) enum Spare {
    /// None was asked for.
    #[default]
    None,
    /// One is to be made, of this number and size.
    Wanted(WantedSegment),
    /// One is there.
    Ready(Arc<Segment>, u32),
    /// It could not be made, for this reason. It is tried again until it can.
    Delayed(WantedSegment, NoSpare),
}

/// A segment to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedSegment {
    pub(crate) number: u32,
    pub(crate) bytes: u32,
}

/// Why there is no next segment.
#[derive(Clone, Debug)]
pub(crate) enum NoSpare {
    /// The disk has no room for it now.
    NoRoom(Arc<str>),
    /// The disk refused to make it now, for another reason.
    Refused(Arc<str>),
    /// There will never be one.
    Failed(Arc<str>),
}

impl Spare {
    /// What became of making one. Whatever went wrong, nothing that was acknowledged is in a segment that is not used yet.
    pub(crate) fn made(wanted: WantedSegment, made: io::Result<Segment>) -> Self {
        match made {
            Ok(segment) => Self::Ready(Arc::new(segment), wanted.bytes),
            Err(error) if is_full(&error) => Self::Delayed(wanted, NoSpare::NoRoom(error.to_string().into())),
            Err(error) => {
                let why = format!("{} cannot be prepared: {error}", name::segment(wanted.number));
                Self::Delayed(wanted, NoSpare::Refused(why.into()))
            }
        }
    }

    /// The segment to be made, if there is one.
    pub(crate) fn wanted(&self) -> Option<WantedSegment> {
        match self {
            Self::Wanted(wanted) | Self::Delayed(wanted, _) => Some(*wanted),
            Self::None | Self::Ready(..) => None,
        }
    }
}
