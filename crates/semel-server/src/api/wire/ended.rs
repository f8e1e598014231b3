//! What is told under a permit.

use serde::Serialize;

use semel_ops::record_json::Moment;

/// What `complete` is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = CompleteAnswer))]
pub(crate) enum Completed {
    /// The outcome is stored; every retry gets it.
    Done {
        /// Until when it is remembered; `null` for ever.
        remembered_until: Option<Moment>,
    },
    /// Another run took over, or the record is gone: nothing was stored. Do not report success.
    Lost,
}

/// What `release` is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = ReleaseAnswer))]
pub(crate) enum Released {
    /// The next claim runs.
    Released,
    /// There was nothing to give up; nothing was changed.
    NotHolding,
}

/// What `hold` is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = HoldAnswer))]
pub(crate) enum Held {
    /// Nobody may run until somebody decides.
    Held,
    /// There was nothing to hold; nothing was changed.
    NotHolding,
}

/// What `renew` is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = RenewAnswer))]
pub(crate) enum Renewed {
    /// The lease has started anew.
    Renewed {
        /// How long the permit is good from when this was asked.
        lease_ms: u64,
    },
    /// Another run took over, or the record is gone. Stop.
    Lost,
}

/// What `step` is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = StepAnswer))]
pub(crate) enum Stepped {
    /// The value is stored; a next attempt gets it.
    Stored,
    /// Another run took over, or the record is gone: nothing was stored. Stop.
    Lost,
}
