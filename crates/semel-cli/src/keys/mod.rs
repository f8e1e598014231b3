//! `semel keys`: to find one record, look at it, and settle it.
//!
//! - [`which`](Which): which record is meant, by its key or by the beginning of its id.
//! - [`list`](mod@list): many records, a line each. [`show`](mod@show): the whole life of one.
//! - [`settle`]: release and resolve, which ask first.
//! - `words`: a record in words.

mod list;
mod settle;
mod show;
mod which;

pub(crate) use list::{Filtered, List, list};
pub(crate) use semel_ops::format::record as words;
pub(crate) use settle::{How, Release, Resolve, release, resolve};
pub(crate) use show::{Bytes, Show, show};
pub(crate) use which::{IdPrefix, Which};
