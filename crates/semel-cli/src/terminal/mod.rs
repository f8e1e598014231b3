//! What people see: tables, spans, moments, progress and questions.
//!
//! - [`out`]: standard output, also when nobody reads on; and questions, before anything is changed. [`style`]: what colours mean here.
//! - [`table`]: columns that fit the terminal. [`text`]: what strangers wrote, made safe to show.
//! - [`span`] and [`moment`]: `3m 12s` and `2026-11-16 02:14:26 UTC`. [`bytes`]: sizes and hex dumps. [`number`]: 1,234,567.
//! - [`bar`]: how far a walk has come, and how long it took.

pub(crate) mod bar;
pub(crate) mod moment;
pub(crate) mod out;
pub(crate) mod style;
mod table;
pub(crate) mod text;

pub(crate) use bar::{Bar, Stopwatch};
pub(crate) use out::Consent;
pub(crate) use semel_ops::format::number::{counted, grouped};
pub(crate) use semel_ops::format::{bytes, span};
pub(crate) use table::{Cell, Column, Table};
