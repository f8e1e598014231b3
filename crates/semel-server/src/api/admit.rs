//! Whether a caller may ask at all: its role, and its quota.

use super::problem::Problem;
use crate::access::{Authenticated, Need};

/// Whether the role is enough, and so many asks are left of the quota.
pub(super) fn admit(asker: &Authenticated, need: Need, asks: usize) -> Result<(), Problem> {
    asker.need(need)?;
    asker.0.admit(asks as u64).map_err(Problem::quota_exceeded)
}
