//! stub
use crate::{principal::Caller, settings::Quotas};
use std::time::Duration;
use tokio::time::Instant;
#[derive(Default)]
pub(crate) struct Usage;
impl Usage {
    pub(crate) fn is_over(&self, _: &Caller, _: &Quotas, _: Instant) -> Option<Duration> {
        None
    }
    pub(crate) fn count_key(&self, _: &Caller, _: &Quotas, _: Duration, _: Instant) {}
    pub(crate) fn count_bytes(&self, _: &Caller, _: &Quotas, _: Duration, _: u64, _: Instant) {}
}
