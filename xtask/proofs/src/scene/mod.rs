//! A store that looks like one in use, and pictures of every page.

mod dashboard;
mod data;
mod pictures;

pub use dashboard::{Args as DashboardArgs, dashboard};
pub use data::{Scene, fill};
pub use pictures::{Args, run};
