//! `redis://…` in a build without Redis.

use super::address::Url;
use super::opened::{Opened, Pending};
use crate::missing_feature;

pub(super) fn open(_: &Url) -> Pending<'static, Opened> {
    Box::pin(std::future::ready(Err(missing_feature("Redis", "redis"))))
}
