//! What the servers' settings were at the last check, and what that means for new claims.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use semel::store::{DurabilityDemand, Finding, SettingsWatch};
use semel::{Error, ErrorKind, Result};
use tokio::runtime::Handle;

use crate::check::{EVICTION, Inspection};
use crate::durability::Durability;
use crate::store::Inner;

/// The settings by the last check. The promise is what was asked for, or else what was found when the store connected.
pub(crate) struct KnownSettings {
    watch: SettingsWatch,
    /// The least that keeps the promise.
    promised: Durability,
    /// Whether a master deletes records when its memory is full.
    evicts: AtomicBool,
    survives: Mutex<Arc<str>>,
    /// How often the masters had changed at the last check.
    checked_changes: AtomicU64,
    is_checking: AtomicBool,
}

impl KnownSettings {
    pub(crate) fn new(wanted: Option<Durability>, found: &Inspection) -> Self {
        let promised = wanted.unwrap_or(found.durability());
        let demand =
            if wanted.is_some() { DurabilityDemand::Demanded } else { DurabilityDemand::AsConfigured };
        let known = Self {
            watch: SettingsWatch::new(demand, &[]),
            promised,
            evicts: AtomicBool::new(false),
            survives: Mutex::new("".into()),
            checked_changes: AtomicU64::new(0),
            is_checking: AtomicBool::new(false),
        };
        known.note(found);
        known
    }

    /// Takes in what a check found.
    pub(crate) fn note(&self, found: &Inspection) {
        let findings = found.findings(self.promised);
        self.watch.note(&findings);
        self.evicts.store(self.eviction().is_some(), Ordering::Release);
        *self.survives.lock().unwrap_or_else(PoisonError::into_inner) = found.survives().into();
    }

    pub(crate) fn broken(&self) -> Arc<[Finding]> {
        self.watch.broken()
    }

    pub(crate) fn survives(&self) -> String {
        self.survives.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    /// Why a new claim is refused now; `None` if it is not. A server that deletes records gets none, also where no durability was asked for.
    pub(crate) fn refusal(&self) -> Option<Error> {
        if !self.evicts.load(Ordering::Acquire) {
            return self.watch.refusal();
        }
        let Finding { setting, found, wanted, .. } = self.eviction()?;
        let found = found.as_deref().unwrap_or("not readable");
        Some(Error::new(
            ErrorKind::Unavailable,
            format!(
                "{setting} is {found}, which deletes records whose promise still holds, so new claims are refused; set it \
                 to {wanted}"
            ),
        ))
    }

    fn eviction(&self) -> Option<Finding> {
        self.watch.broken().iter().find(|finding| finding.setting.starts_with(EVICTION)).cloned()
    }
}

/// Checks the settings if that is due, or if there is a master that was not checked yet. No caller waits for it.
pub(crate) fn check_if_due(inner: &Arc<Inner>) {
    let known = &inner.settings;
    let changes = inner.servers.changes();
    let is_new = known.checked_changes.load(Ordering::Acquire) != changes;
    if !(is_new || known.watch.take_due()) || known.is_checking.swap(true, Ordering::AcqRel) {
        return;
    }
    let Ok(runtime) = Handle::try_current() else {
        known.is_checking.store(false, Ordering::Release);
        return;
    };
    let inner = Arc::clone(inner);
    runtime.spawn(async move {
        let checking = Checking(&inner.settings.is_checking);
        match check(&inner).await {
            Ok(_) => inner.settings.checked_changes.store(changes, Ordering::Release),
            Err(error) => tracing::debug!(%error, "semel: the settings of Redis could not be checked"),
        }
        drop(checking);
    });
}

/// Lets the next check begin, also if this one is cancelled with its runtime.
struct Checking<'a>(&'a AtomicBool);

impl Drop for Checking<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Checks the settings now.
pub(crate) async fn check(inner: &Inner) -> Result<Inspection> {
    let found = Inspection::make(&inner.servers, &inner.names).await?;
    inner.settings.note(&found);
    Ok(found)
}
