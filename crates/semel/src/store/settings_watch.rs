//! Whether a server's settings still keep the promise, checked again while the store is used.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::{Finding, Verdict};
use crate::error::{Error, ErrorKind};
use crate::lock::lock;

/// How often the settings are checked while a store is used: a change is noticed within a minute.
const CHECK_EVERY: Duration = Duration::from_secs(20);

/// What happens to new claims while a setting breaks the promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurabilityDemand {
    /// They are refused.
    Demanded,
    /// They are taken, with a warning in the log.
    AsConfigured,
}

/// The settings that a store on a server last found, shared by all its clones.
///
/// A store asks [`take_due`](Self::take_due) at each swap and at each sweep; the one caller that gets `true` checks the
/// settings and hands the findings to [`note`](Self::note). Runs that were granted go on and may be settled: only new claims
/// are refused.
pub struct SettingsWatch {
    demand: DurabilityDemand,
    /// Set while `latest` has a broken setting: read at every swap.
    is_broken: AtomicBool,
    latest: Mutex<Latest>,
}

#[derive(Default)]
struct Latest {
    /// When the last check began.
    checked_at: Option<Instant>,
    broken: Arc<[Finding]>,
}

impl SettingsWatch {
    /// Starts from what was found when the store connected.
    #[expect(clippy::disallowed_methods, reason = "measures how old a check is")]
    pub fn new(demand: DurabilityDemand, findings: &[Finding]) -> Self {
        let latest = Latest { checked_at: Some(Instant::now()), ..Latest::default() };
        let watch = Self { demand, is_broken: AtomicBool::new(false), latest: Mutex::new(latest) };
        watch.note(findings);
        watch
    }

    /// Whether the settings should be checked now; `true` for one caller in 20 seconds.
    #[expect(clippy::disallowed_methods, reason = "measures how old a check is")]
    pub fn take_due(&self) -> bool {
        let now = Instant::now();
        let mut latest = lock(&self.latest);
        let is_due = latest.checked_at.is_none_or(|at| now.saturating_duration_since(at) >= CHECK_EVERY);
        if is_due {
            latest.checked_at = Some(now);
        }
        is_due
    }

    /// Takes in what a check found. A change is logged, and the gauge `semel_store_settings_broken` set.
    pub fn note(&self, findings: &[Finding]) {
        let broken: Arc<[Finding]> =
            findings.iter().filter(|finding| finding.verdict == Verdict::Broken).cloned().collect();
        let before = {
            let mut latest = lock(&self.latest);
            self.is_broken.store(!broken.is_empty(), Ordering::Release);
            std::mem::replace(&mut latest.broken, Arc::clone(&broken))
        };
        metrics::gauge!(crate::metrics::STORE_SETTINGS_BROKEN.name)
            .set(u32::try_from(broken.len()).unwrap_or(u32::MAX));
        for Finding { setting, found, wanted, .. } in
            broken.iter().filter(|finding| !before.contains(finding))
        {
            let found = found.as_deref().unwrap_or("not readable");
            tracing::error!(%setting, %found, %wanted, "semel: a setting of the store's server no longer keeps the promise");
        }
        if broken.is_empty() && !before.is_empty() {
            tracing::info!("semel: the settings of the store's server keep the promise again");
        }
    }

    /// The settings that break the promise, by the last check.
    pub fn broken(&self) -> Arc<[Finding]> {
        Arc::clone(&lock(&self.latest).broken)
    }

    /// Why a new claim is refused now; `None` if it is not.
    pub fn refusal(&self) -> Option<Error> {
        if self.demand == DurabilityDemand::AsConfigured || !self.is_broken.load(Ordering::Acquire) {
            return None;
        }
        let Finding { setting, found, wanted, .. } = self.broken().first()?.clone();
        let found = found.as_deref().unwrap_or("not readable");
        Some(Error::new(
            ErrorKind::Unavailable,
            format!(
                "{setting} is {found} on the store's server, so its promise cannot be kept, and new claims are refused; \
                 wanted: {wanted}"
            ),
        ))
    }
}

impl fmt::Debug for SettingsWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SettingsWatch({} broken)", self.broken().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(found: &str, verdict: Verdict) -> Finding {
        Finding { setting: "fsync".into(), found: Some(found.into()), wanted: "on".into(), verdict }
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_in_twenty_seconds_is_asked_to_check() {
        let watch = SettingsWatch::new(DurabilityDemand::Demanded, &[]);
        assert!(!watch.take_due(), "it was checked at connect");
        tokio::time::advance(CHECK_EVERY).await;
        assert!(watch.take_due());
        assert!(!watch.take_due(), "another caller is checking");
    }

    #[tokio::test]
    async fn new_claims_are_refused_while_a_setting_is_broken() {
        let watch = SettingsWatch::new(DurabilityDemand::Demanded, &[finding("on", Verdict::Kept)]);
        assert!(watch.refusal().is_none());
        watch.note(&[finding("off", Verdict::Broken)]);
        let refusal = watch.refusal().expect("is refused");
        assert_eq!(refusal.kind(), ErrorKind::Unavailable);
        assert!(refusal.to_string().starts_with("fsync is off"), "{refusal}");
        watch.note(&[finding("on", Verdict::Kept)]);
        assert!(watch.refusal().is_none());
    }

    #[tokio::test]
    async fn what_cannot_be_read_refuses_nothing() {
        let watch = SettingsWatch::new(DurabilityDemand::Demanded, &[finding("", Verdict::Unreadable)]);
        assert!(watch.refusal().is_none() && watch.broken().is_empty());
    }

    #[tokio::test]
    async fn where_losses_are_accepted_a_broken_setting_is_shown_and_refuses_nothing() {
        let watch = SettingsWatch::new(DurabilityDemand::AsConfigured, &[finding("off", Verdict::Broken)]);
        assert!(watch.refusal().is_none());
        assert_eq!(watch.broken().len(), 1);
    }
}
