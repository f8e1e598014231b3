//! What is asked under a permit.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::claim::OutcomeAs;
use super::outcome::{Outcome, bytes_of};
use super::text::{Text, given};
use crate::api::problem::Problem;

/// The longest that a reason or the name of a step may be.
const WORDS_BYTES_MAX: usize = 4_096;

/// Ends the run with an outcome.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Complete<'a> {
    /// The right to run, as the claim was told.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "p1.AAAAAAAAAAAAAAAAAAAAAQ"))]
    pub(crate) permit: Text<'a>,
    /// What every retry gets; without it, a success with no bytes.
    pub(crate) outcome: Option<Outcome<'a>>,
}

/// Gives up, so that another may run.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Release<'a> {
    /// The right to run, as the claim was told.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "p1.AAAAAAAAAAAAAAAAAAAAAQ"))]
    pub(crate) permit: Text<'a>,
    /// Why, in words for people.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, max_length = 4_096, example = "the provider was down"))]
    pub(crate) reason: Option<Text<'a>>,
}

/// Ends the run so that nobody may repeat it before somebody has looked at it.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Hold<'a> {
    /// The right to run, as the claim was told.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "p1.AAAAAAAAAAAAAAAAAAAAAQ"))]
    pub(crate) permit: Text<'a>,
    /// Why, in words for people.
    #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 4_096, example = "the provider did not answer"))]
    pub(crate) reason: Text<'a>,
}

/// Starts the lease anew.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Renew<'a> {
    /// The right to run, as the claim was told.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "p1.AAAAAAAAAAAAAAAAAAAAAQ"))]
    pub(crate) permit: Text<'a>,
}

/// Goes on under a permit that another process was granted.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Resume<'a> {
    /// The right to run, as the claim was told.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "p1.AAAAAAAAAAAAAAAAAAAAAQ"))]
    pub(crate) permit: Text<'a>,
    /// How the values of steps are shown: as JSON where they are JSON text, unless this says `base64`.
    pub(crate) outcome_as: Option<OutcomeAs>,
}

/// Stores the value of a finished step, so that a next attempt goes on after it.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Step<'a> {
    /// The right to run, as the claim was told.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "p1.AAAAAAAAAAAAAAAAAAAAAQ"))]
    pub(crate) permit: Text<'a>,
    /// What the work calls it. A step that is there already keeps its value.
    #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 4_096, example = "charge"))]
    pub(crate) name: Text<'a>,
    /// Its value as JSON of any kind; this or `base64`.
    #[serde(borrow, default, deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    json: Option<&'a RawValue>,
    /// Its value as bytes in base64; this or `json`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    base64: Option<Text<'a>>,
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
