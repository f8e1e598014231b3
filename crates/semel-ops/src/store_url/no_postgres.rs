//! `postgres://…` in a build without PostgreSQL.

use super::address::Url;
use super::opened::{Migrated, Opened, Pending};
use crate::missing_feature;

pub(super) fn open(_: &Url) -> Pending<'static, Opened> {
    Box::pin(std::future::ready(Err(missing_feature("PostgreSQL", "postgres"))))
}

pub(super) fn open_to_check(url: &Url) -> Pending<'static, Opened> {
    open(url)
}

pub(super) fn migrate(_: &Url) -> Pending<'static, Migrated> {
    Box::pin(std::future::ready(Err(missing_feature("PostgreSQL", "postgres"))))
}
