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

/// An identity, a header or a tail that this store cannot use.
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
                "{place}: {file} belongs to another store (its id at byte {} is not the one in {}); nothing was \
                 changed: move the file back to where it came from",
                if file == name::TAIL { 12 } else { 16 },
                name::IDENTITY
            ),
        ),
        Unreadable::Misplaced(number) => Error::new(
            ErrorKind::Corrupt,
            format!(
                "{place}: {file} holds segment {} (its number is at byte 12); nothing was changed: give the files their \
                 names back",
                name::segment(number)
            ),
        ),
    }
}

/// A file that must be there and is not.
#[cold]
pub(crate) fn missing(place: &str, file: &str) -> Error {
    incomplete(place, format_args!("{file} is missing (byte 0)"))
}

/// A file that has fewer bytes than it was made with.
#[cold]
pub(crate) fn shortened(place: &str, file: &str, bytes: u32, wanted_bytes: u32) -> Error {
    incomplete(
        place,
        format_args!("{file} is cut short: it ends at byte {bytes} and had {wanted_bytes} bytes"),
    )
}

/// A log that ends before the place up to which it was acknowledged.
#[cold]
pub(crate) fn lost(place: &str, number: u32, end: u32, acknowledged: u32) -> Error {
    let file = name::segment(number);
    incomplete(
        place,
        format_args!(
            "{file} is cut short: it was acknowledged up to byte {acknowledged}, and its records end at byte {end}"
        ),
    )
}

/// Something was taken away by a person or a tool: a backup may still have it.
#[cold]
fn incomplete(place: &str, what: std::fmt::Arguments<'_>) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "{place}: {what}; nothing was changed: bring the file back from a backup, or see what is missing with \
             `semel file verify {place}` and copy what is left with `semel file repair {place} --to NEW-FOLDER`"
        ),
    )
}

/// The disk did not do what it was asked while nothing was at stake yet.
#[cold]
pub(crate) fn unavailable(place: &str, what: &str, error: io::Error) -> Error {
    let kind = error.kind();
    let next_step = if kind == io::ErrorKind::PermissionDenied {
        "give this process the right to read and write it"
    } else if matches!(kind, io::ErrorKind::IsADirectory | io::ErrorKind::NotFound) {
        "bring the file back from a backup"
    } else {
        "mend the disk"
    };
    let message =
        format!("{place}: cannot {what}: {error}; nothing was changed: {next_step}, then open it again");
    Error::new(ErrorKind::Unavailable, message).caused_by(error)
}

/// Whether the disk only has no room, which may come back.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
