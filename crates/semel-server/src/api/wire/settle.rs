//! What is asked under a permit, and what is told.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::claim::OutcomeAs;
use super::outcome::{Outcome, Text, bytes_of, given};
use crate::api::problem::Problem;
use semel_ops::record_json::Moment;

/// The longest that a reason or the name of a step may be.
const WORDS_BYTES_MAX: usize = 4_096;

/// Bodies that begin with a permit. Unknown members are refused by name, which rules out a body within a body.
macro_rules! under_permit {
    ($($(#[$doc:meta])* $body:ident { $($(#[$member_doc:meta])* $member:ident: $type:ty,)* })*) => { $(
        $(#[$doc])*
        #[derive(Debug, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $body<'a> {
            /// The right to run, as the claim was told.
            #[serde(borrow)]
            #[cfg_attr(feature = "openapi", schema(value_type = String, example = "p1.AAAAAAAAAAAAAAAAAAAAAQ"))]
            pub(crate) permit: Text<'a>,
            $($(#[$member_doc])* pub(crate) $member: $type,)*
        }
    )* };
}

under_permit! {
    /// Ends the run with an outcome.
    Complete {
        /// What every retry gets; without it, a success with no bytes.
        outcome: Option<Outcome<'a>>,
    }

    /// Gives up, so that another may run.
    Release {
        /// Why, in words for people.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, max_length = 4_096, example = "the provider was down"))]
        reason: Option<Text<'a>>,
    }

    /// Ends the run so that nobody may repeat it before somebody has looked at it.
    Hold {
        /// Why, in words for people.
        #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 4_096, example = "the provider did not answer"))]
        reason: Text<'a>,
    }

    /// Starts the lease anew.
    Renew {}

    /// Goes on under a permit that another process was granted.
    Resume {
        /// How the values of steps are shown: as JSON where they are JSON text, unless this says `base64`.
        outcome_as: Option<OutcomeAs>,
    }

    /// Stores the value of a finished step, so that a next attempt goes on after it.
    Step {
        /// What the work calls it. A step that is there already keeps its value.
        #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 4_096, example = "charge"))]
        name: Text<'a>,
        /// Its value as JSON of any kind; this or `base64`.
        #[serde(borrow, default, deserialize_with = "given")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
        json: Option<&'a RawValue>,
        /// Its value as bytes in base64; this or `json`.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
        base64: Option<Text<'a>>,
    }
}

impl Step<'_> {
    pub(crate) fn value(&self) -> Result<Vec<u8>, Problem> {
        if self.json.is_none() && self.base64.is_none() {
            return Err(Problem::invalid("a step needs its value; give json or base64"));
        }
        bytes_of(self.json, self.base64.as_deref())
    }

    pub(crate) fn name(&self) -> Result<&str, Problem> {
        bounded("name", &self.name)
    }
}

impl Release<'_> {
    pub(crate) fn reason(&self) -> Result<&str, Problem> {
        self.reason.as_deref().map_or(Ok("released"), |reason| bounded("reason", reason))
    }
}

impl Hold<'_> {
    pub(crate) fn reason(&self) -> Result<&str, Problem> {
        bounded("reason", &self.reason)
    }
}

/// Words for people are kept in the record: they have a bound.
pub(crate) fn bounded<'a>(member: &str, text: &'a str) -> Result<&'a str, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::invalid(format!("{member} is empty; give it a value")));
    }
    if text.len() > WORDS_BYTES_MAX {
        return Err(Problem::invalid(format!("{member} is longer than {WORDS_BYTES_MAX} bytes; shorten it")));
    }
    Ok(text)
}

/// What `complete` is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CompleteAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ReleaseAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub(crate) enum Released {
    /// The next claim runs.
    Released,
    /// There was nothing to give up; nothing was changed.
    NotHolding,
}

/// What `hold` is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = HoldAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub(crate) enum Held {
    /// Nobody may run until somebody decides.
    Held,
    /// There was nothing to hold; nothing was changed.
    NotHolding,
}

/// What `renew` is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RenewAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the words of the JSON")]
pub(crate) enum Renewed {
    /// The lease has started anew.
    Renewed {
        /// How long the permit is good from when this was asked.
        lease_ms: u64,
    },
    /// The run was completed under this permit: there is nothing to renew, and nothing is lost.
    Done,
    /// Another run took over, or the record is gone. Stop.
    Lost,
}

/// What `step` is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StepAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub(crate) enum Stepped {
    /// The value is stored; a next attempt gets it.
    Stored,
    /// Another run took over, or the record is gone: nothing was stored. Stop.
    Lost,
}
