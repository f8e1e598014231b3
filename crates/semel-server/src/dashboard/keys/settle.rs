//! Does what was confirmed, to just the version that was shown.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use semel::record::Record;
use semel::{Outcome, OutcomeKind, Resolution, Result as SemelResult};
use serde::Deserialize;

use super::lookup::Found;
use crate::access::Need;
use crate::dashboard::answer::{Refused, see_other};
use crate::dashboard::flash::Flash;
use crate::dashboard::form::{Posted, Signed};
use crate::dashboard::session::Visitor;
use crate::operator_actions;
use crate::state::AppState;
use semel_ops::operator_actions::Settled;

/// The longest a reason may be.
const REASON_BYTES_MAX: usize = 2_048;

/// What the form of a release holds.
#[derive(Deserialize)]
pub(in crate::dashboard) struct Release {
    #[serde(default)]
    csrf: String,
    version: u64,
    #[serde(default)]
    reason: String,
}

/// What the form of a resolution holds.
#[derive(Deserialize)]
pub(in crate::dashboard) struct Resolve {
    #[serde(default)]
    csrf: String,
    version: u64,
    how: How,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    reason: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum How {
    Done,
    Release,
}

impl Signed for Release {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

impl Signed for Resolve {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

pub(in crate::dashboard) async fn release(
    State(served): State<Arc<AppState>>,
    Path(id): Path<String>,
    Posted { visitor, form }: Posted<Release>,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let reason = reason(&visitor, &form.reason)?;
    let Found { record, .. } = Found::by_id(&served, &visitor, &id).await?;
    let settled =
        operator_actions::release(&served, &visitor.caller, &record, reason, Some(form.version)).await;
    told(&visitor, &record, settled)
}

pub(in crate::dashboard) async fn resolve(
    State(served): State<Arc<AppState>>,
    Path(id): Path<String>,
    Posted { visitor, form }: Posted<Resolve>,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let resolution = match form.how {
        How::Release => Resolution::Release { reason: reason(&visitor, &form.reason)?.into() },
        How::Done => Resolution::Done(Outcome::new(kind(&form.kind), typed(&form.outcome).into_bytes())),
    };
    let Found { record, .. } = Found::by_id(&served, &visitor, &id).await?;
    let settled =
        operator_actions::resolve(&served, &visitor.caller, &record, resolution, Some(form.version)).await;
    told(&visitor, &record, settled)
}

fn kind(word: &str) -> OutcomeKind {
    OutcomeKind::from_word(if word.is_empty() { "success" } else { word })
}

/// What was typed. Browsers send every line's end as two characters, which nobody typed.
fn typed(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn reason<'a>(visitor: &Visitor, reason: &'a str) -> Result<&'a str, Refused> {
    let reason = reason.trim();
    if reason.is_empty() || reason.len() > REASON_BYTES_MAX {
        return Err(Refused::invalid(
            visitor,
            "Say why, in a line: others will want to know. Nothing was changed.",
        ));
    }
    Ok(reason)
}

/// Back to the key, with what became of it.
fn told(visitor: &Visitor, record: &Record, settled: SemelResult<Settled>) -> Result<Response, Refused> {
    let flash = match settled.map_err(|error| Refused::store(visitor, &error))? {
        Settled::Released => Flash::Released,
        Settled::Resolved => Flash::Resolved,
        Settled::NotHeld => Flash::NotHeld,
        Settled::Changed => Flash::Changed,
    };
    Ok(see_other(&format!("/keys/{}?said={}", record.key.id(), flash.word())))
}
