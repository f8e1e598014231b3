//! What was found last of the server that is asked: whether its settings keep the promise, and what survives with them.

use std::sync::{Mutex, PoisonError};

use semel::store::{Finding, SettingsWatch};

use crate::check::{ServerSettings, durability_demand};
use crate::config::Config;
use crate::replication::Replication;

/// Shared by all connections of a store.
pub(crate) struct Health {
    pub(crate) watch: SettingsWatch,
    pub(crate) replication: Replication,
    survives: Mutex<String>,
}

impl Health {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            watch: SettingsWatch::new(durability_demand(config), &[]),
            replication: Replication::default(),
            survives: Mutex::default(),
        }
    }

    /// Takes in what a session or a check found.
    pub(crate) fn note(&self, settings: &ServerSettings, findings: &[Finding], config: &Config) {
        self.replication.set_synchronous(settings.waits_for_standby());
        *self.survives.lock().unwrap_or_else(PoisonError::into_inner) = settings.survives(config);
        self.watch.note(findings);
    }

    /// What acknowledgements survive, in words for people.
    pub(crate) fn survives(&self) -> String {
        self.survives.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
