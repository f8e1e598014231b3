//! Everything that a layer may be told, beside its engine and who its callers are.

use std::time::Duration;

use crate::budget;
use crate::hosts::Hosts;
use crate::identity::KeyIdentity;
use crate::profile::{Profile, Rules};

/// Everything that a layer may be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What clients see, and the rules of every path that no route names.
    pub profile: Profile,
    /// Paths with rules of their own.
    pub routes: Vec<Route>,
    /// What comes before the caller in the scope of every key: the name of a service that shares its store, say.
    pub scope: Vec<String>,
    /// Whether each host has keys of its own.
    pub hosts: Hosts,
    /// Which identity keys have: that of this version, unless keys of 0.1 are to be found.
    pub key_identity: KeyIdentity,
    /// How much one caller may use; `None` for no bound.
    pub quotas: Option<Quotas>,
    /// How long to wait for the store to answer a claim.
    pub store_timeout: Duration,
    /// How long the body of a covered request may take to come: until it is whole, it holds room and nothing runs.
    pub body_timeout: Duration,
    /// How many bytes covered requests may make the process hold at once: their bodies, responses that are being kept, and
    /// stored responses that wait for a slow client. Requests and replays may use three quarters of it; the rest is for
    /// the responses of runs that were granted.
    pub held_bytes_max: usize,
    /// How many of these bytes one caller may hold with requests and replays; past that, what it sends is refused with
    /// 503 and others are served. By default a quarter of all, but not less than 4 MiB.
    pub caller_held_bytes_max: Option<usize>,
    /// How many [probes](crate::Probe) may wait for their answers at once. Past that, a retry finds its key held and is asked
    /// to come back after a second.
    pub probes_in_flight_max: usize,
}

impl Settings {
    /// The longest request body that ever finds room within `held_bytes_max` and `caller_held_bytes_max`.
    pub fn admitted_bytes_max(&self) -> usize {
        budget::admitted_bytes_max(self.held_bytes_max, self.caller_held_bytes_max)
    }
}

/// A path with rules of its own.
#[derive(Clone, Debug)]
pub struct Route {
    /// Which paths: `/charges`, `/charges/{id}`, `/v1/{*rest}`. Matched against the path that the client sent, also where a
    /// router strips a prefix before the layer.
    pub path: String,
    /// The rules; their methods say which requests to these paths are covered.
    pub rules: Rules,
}

/// How much one caller may use. Counted by this process, since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Keys that were not there before, in a minute. A key counts once, also if it is released and sent again.
    pub new_keys_per_minute: Option<u64>,
    /// Records that are remembered. An answer that is not kept leaves none.
    pub records: Option<u64>,
    /// Bytes of outcomes that are remembered.
    pub bytes: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            routes: Vec::new(),
            scope: Vec::new(),
            hosts: Hosts::default(),
            key_identity: KeyIdentity::default(),
            quotas: None,
            store_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_mins(1),
            held_bytes_max: 256 << 20,
            caller_held_bytes_max: None,
            probes_in_flight_max: 64,
        }
    }
}
