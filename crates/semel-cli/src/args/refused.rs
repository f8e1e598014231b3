//! What is said to arguments that mean nothing; the process ends with code 2.

use std::num::NonZeroUsize;

use clap::error::ErrorKind;

use super::root::definition;

/// What an argument means, or why it means nothing.
pub(super) type Meaning<T> = Result<T, clap::Error>;

pub(super) fn refused(message: &str) -> clap::Error {
    definition().error(ErrorKind::ValueValidation, message)
}

pub(super) fn at_least_one(option: &str, value: usize) -> Meaning<NonZeroUsize> {
    NonZeroUsize::new(value).ok_or_else(|| refused(&format!("{option} is 0; give at least 1")))
}
