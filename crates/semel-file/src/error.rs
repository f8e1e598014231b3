//! Errors that say which file, which offset, and what to do.

use std::io;

use semel::{Error, ErrorKind};

use crate::format::identity::{FORMAT, Unreadable};
use crate::format::name;

/// Bytes that are not what was written.
#[cold]
pub(crate) fn damaged(place: &str, file: &str, offset: u32, what: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "{place}: {file} {what} at byte {offset}; nothing was changed: see how much is damaged with `semel file \
             verify {place}`, then copy what is whole with `semel file repair {place} --to NEW-FOLDER`"
        ),
    )
}

/// A whole frame with a record that this release cannot read.
#[cold]
pub(crate) fn unreadable_record(place: &str, file: &str, offset: u32, why: Error) -> Error {
    Error::new(why.kind(), format!("{place}: {file} at byte {offset}: {why}")).caused_by(why)
}

/// An identity or a header that this store cannot use.
#[cold]
pub(crate) fn unreadable(place: &str, file: &str, why: Unreadable) -> Error {
    match why {
        Unreadable::Damaged(what) => damaged(place, file, 0, what),
        Unreadable::Newer(format) => Error::new(
            ErrorKind::Newer,
            format!(
                "{place}: {file} has format {format} at byte 8, and this release reads up to {FORMAT}; nothing was \
                 changed: upgrade this process"
            ),
        ),
        Unreadable::Foreign => Error::new(
            ErrorKind::Corrupt,
            format!(
                "{place}: {file} belongs to another store (its id at byte 16 is not the one in {}); nothing was \
                 changed: move the file back to where it came from",
                name::IDENTITY
            ),
        ),
    }
}

/// A segment that must be there and is not.
#[cold]
pub(crate) fn missing(place: &str, number: u32) -> Error {
    let file = name::segment(number);
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "{place}: {file} is missing (byte 0); nothing was changed: bring it back from a backup, or copy what is \
             left with `semel file repair {place} --to NEW-FOLDER`"
        ),
    )
}

/// The disk did not do what it was asked while nothing was at stake yet.
#[cold]
pub(crate) fn unavailable(place: &str, what: &str, error: io::Error) -> Error {
    let message =
        format!("{place}: cannot {what}: {error}; nothing was changed: mend the disk, then open it again");
    Error::new(ErrorKind::Unavailable, message).caused_by(error)
}

/// Whether the disk only has no room, which may come back.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
