//! What a caller may choose: lease, retention, and what lapses, failures and outages mean.

use std::time::Duration;

use crate::error::{Error, Result};

/// How long a permit is good without renewal, unless the caller says otherwise.
pub const LEASE_DEFAULT: Duration = Duration::from_mins(1);
/// How long a finished record is remembered, unless the caller says otherwise.
pub const RETENTION_DEFAULT: Duration = Duration::from_hours(24);

/// The longest lease: whoever dies holding one blocks its key for that long.
pub const LEASE_MAX: Duration = Duration::from_hours(24);
/// The longest retention. Whatever is remembered for this long is remembered for ever.
pub const RETENTION_MAX: Duration = Duration::from_hours(24 * 365 * 100);

/// What a lapsed lease means. Kept with the record, so that every process agrees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lapse {
    /// The run is taken for dead and the next claim runs again, as the next attempt.
    #[default]
    Rerun,
    /// Nobody knows whether the effect landed: the record is held until a person or a probe decides.
    Hold,
}

/// What an `Err` from the work means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// The key is released and a retry runs again.
    #[default]
    Release,
    /// The failure is stored and every retry gets it.
    Store,
}

/// What to do while the store does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnOutage {
    /// Refuse with `Unavailable`: nothing runs that could run twice.
    #[default]
    Closed,
    /// Run without protection, and say so in the decision, a counter and a log line.
    Open,
}

/// The choices that a run is made under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long a permit is good without renewal.
    pub lease: Duration,
    /// How long a finished record is remembered.
    pub retention: Duration,
    /// What a lapsed lease means.
    pub lapse: Lapse,
    /// How many runs may be granted before the record is held; `None` for no bound.
    pub attempts_max: Option<u32>,
    /// What an `Err` from the work means.
    pub on_failure: OnFailure,
    /// What to do while the store does not answer.
    pub on_outage: OnOutage,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lease: LEASE_DEFAULT,
            retention: RETENTION_DEFAULT,
            lapse: Lapse::default(),
            attempts_max: None,
            on_failure: OnFailure::default(),
            on_outage: OnOutage::default(),
        }
    }
}

impl Policy {
    /// Refuses what could never work, by the name of the field.
    pub(crate) fn checked(&self) -> Result<()> {
        if self.lease < Duration::from_millis(1) {
            return Err(Error::invalid("lease is under a millisecond; no run could keep it"));
        }
        if self.lease > LEASE_MAX {
            return Err(Error::invalid("lease is over a day; keep it short and let the heartbeat renew it"));
        }
        if self.retention > RETENTION_MAX {
            return Err(Error::invalid("retention is over a hundred years; nothing here lasts that long"));
        }
        if self.retention.is_zero() {
            return Err(Error::invalid("retention is zero; nothing would be remembered"));
        }
        if self.attempts_max == Some(0) {
            return Err(Error::invalid("attempts_max is 0; nothing could ever run"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_never_work_is_refused_by_name() {
        let refused = |policy: Policy| policy.checked().unwrap_err().to_string();
        assert!(Policy::default().checked().is_ok());
        assert!(refused(Policy { lease: Duration::ZERO, ..Policy::default() }).starts_with("lease"));
        assert!(refused(Policy { retention: Duration::ZERO, ..Policy::default() }).starts_with("retention"));
        let none = Policy { attempts_max: Some(0), ..Policy::default() };
        assert!(refused(none).starts_with("attempts_max"));
        assert!(
            refused(Policy { lease: LEASE_MAX + Duration::from_secs(1), ..Policy::default() })
                .starts_with("lease")
        );
        let for_ever = Policy { retention: Duration::MAX, ..Policy::default() };
        assert!(refused(for_ever).starts_with("retention is over"));
        assert!(Policy { lease: Duration::from_millis(1), ..Policy::default() }.checked().is_ok());
    }
}
