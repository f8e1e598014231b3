//! What every measurement shares: rows of numbers, the rounds that fill them, and the page that shows them.
//!
//! - [`rows`](Rows): what was measured, and the [`Bar`]s that it must reach. [`rounds`](drive): the driver.
//! - [`page`](Page): the same as markdown, as a chart ([`chart`](Panel)) and as JSON.

mod chart;
mod page;
mod rounds;
mod rows;

pub(crate) use chart::{ChartBar, Panel};
pub(crate) use page::{Column, HUNDREDTHS, MIB, MS, Page, Shown, TENTHS, THOUSANDTHS, WHOLE, count, grouped};
pub(crate) use rounds::drive;
#[cfg(test)]
pub(crate) use rows::tests::{rates, reached};
pub(crate) use rows::{Bar, Case, Metric, Row, Rows, Sample, Samples, float};
