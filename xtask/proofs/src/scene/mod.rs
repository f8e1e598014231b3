//! A store that looks like one in use, and pictures of every page.

mod command;
mod dashboard;
mod data;
mod pictures;

pub use command::{Args, run};
pub use dashboard::{Args as DashboardArgs, dashboard};
pub use data::{Scene, fill};
