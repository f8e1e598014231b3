//! What operators do to a record that is not theirs: release or resolve just what they were shown.

use std::sync::Arc;

use super::swap_loop::BoxedRule;
use crate::clock::Timestamp;
use crate::machine::Ruling;
use crate::machine::settle::{self, Proof, ReleaseAnswer, Resolution, Resolved};
use crate::record::{PermitId, Record, State, StateKind, Version};

/// What became of an operator's action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorAnswer {
    /// The next claim runs.
    Released,
    /// The record is settled as the operator said.
    Resolved,
    /// There is nothing to settle: the record is done, released, or (to resolve) still running. Nothing was changed.
    NotHeld,
    /// The record is no longer what was shown. Nothing was changed: look again.
    Changed,
}

/// An operator's action on a record that it was shown.
pub(super) struct Action {
    pub(super) shown: Arc<Record>,
    /// Minted for this action: it shows that an action took whose reply was lost.
    pub(super) permit_id: PermitId,
    /// Refuse if the record is no longer at this version, nor the same run.
    pub(super) expected: Option<Version>,
}

impl Action {
    /// Has the next claim run: takes the run that was shown away from its caller, or lets the held record run again.
    pub(super) fn release(self, reason: &str) -> BoxedRule<OperatorAnswer> {
        let reason: Box<str> = reason.into();
        let resolution = Resolution::Release { reason: reason.clone() };
        Box::new(move |found, now| {
            // What was shown as held is released as held, and what was shown as running as that very run.
            let shown_as_held = self.shown.kind_at(now) == StateKind::Held;
            match &self.shown.state {
                State::Done(_) | State::Released(_) => refused(OperatorAnswer::NotHeld),
                State::Running(running) if !shown_as_held => {
                    let proof =
                        Proof { permit_id: running.grant.permit_id, fence: Some(running.grant.fence) };
                    let Ruling { answer, write } = settle::revoke(found, proof, self.permit_id, &reason, now);
                    let answer = match answer {
                        ReleaseAnswer::Released => OperatorAnswer::Released,
                        ReleaseAnswer::NotHolding => OperatorAnswer::Changed,
                    };
                    self.unless_changed(found, Ruling { answer, write })
                }
                State::Running(_) | State::Held(_) => {
                    self.resolved(found, &resolution, OperatorAnswer::Released, now)
                }
            }
        })
    }

    /// Settles a held record: done with an outcome, or released.
    pub(super) fn resolve(self, resolution: Resolution) -> BoxedRule<OperatorAnswer> {
        Box::new(move |found, now| self.resolved(found, &resolution, OperatorAnswer::Resolved, now))
    }

    fn resolved(
        &self,
        found: Option<&Record>,
        resolution: &Resolution,
        success: OperatorAnswer,
        now: Timestamp,
    ) -> Ruling<OperatorAnswer> {
        let Ruling { answer, write } = settle::resolve(found, self.permit_id, resolution, now);
        let answer = match answer {
            Resolved::Resolved => success,
            Resolved::NotHeld => OperatorAnswer::NotHeld,
        };
        self.unless_changed(found, Ruling { answer, write })
    }

    /// The ruling, if the record is still what was shown, or if this action took before.
    fn unless_changed(
        &self,
        found: Option<&Record>,
        ruling: Ruling<OperatorAnswer>,
    ) -> Ruling<OperatorAnswer> {
        let took = ruling.write.is_none()
            && matches!(ruling.answer, OperatorAnswer::Released | OperatorAnswer::Resolved);
        if took || self.is_as_shown(found) { ruling } else { refused(OperatorAnswer::Changed) }
    }

    /// A run that renewed its lease, or a held record that was counted or probed, is still what was shown.
    fn is_as_shown(&self, found: Option<&Record>) -> bool {
        let Some(expected) = self.expected else { return true };
        let Some(found) = found else { return false };
        let (grant, shown) = (found.state.grant(), self.shown.state.grant());
        let is_open = matches!(found.state, State::Running(_) | State::Held(_));
        let is_same_run = is_open && grant.permit_id == shown.permit_id && grant.fence == shown.fence;
        found.version == expected
            || (is_open && grant.fence == expected)
            || (is_same_run && self.shown.version == expected)
    }
}

fn refused(answer: OperatorAnswer) -> Ruling<OperatorAnswer> {
    Ruling { answer, write: None }
}
