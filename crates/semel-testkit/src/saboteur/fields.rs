//! Saboteurs that do not hand back one part of a record as it was.

use std::collections::HashSet;
use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::{AttemptEnd, Grant, HoldReason, PermitId, Record, State, StateKind, Version};
use semel::{Outcome, OutcomeKind};

use super::fault::Fault::Shown;
use super::list::Row;

/// Every saboteur of a part of a record.
pub(super) fn all() -> Vec<Row> {
    [labels(), grants(), open_grants(), attempts_and_references(), words_and_probes()]
        .into_iter()
        .flatten()
        .collect()
}

fn labels() -> Vec<Row> {
    const LABEL: &str = "a_label_comes_back_in_every_state";
    vec![
        ("loses labels", LABEL, Shown(|record| record.label = None)),
        (
            "loses the labels of what is settled",
            LABEL,
            Shown(|record| {
                if record.state.kind() != StateKind::Running {
                    record.label = None;
                }
            }),
        ),
        (
            "cuts labels off",
            LABEL,
            Shown(|record| {
                let cut = record.label.take().map(|label| label.chars().take(255).collect::<String>());
                record.label = cut.map(Arc::from);
            }),
        ),
        (
            "makes labels up",
            LABEL,
            Shown(|record| {
                record.label.get_or_insert("".into());
            }),
        ),
    ]
}

fn grants() -> Vec<Row> {
    const GRANT: &str = "a_grant_comes_back_in_every_state";
    vec![
        ("forgets the permit of what is done", GRANT, Shown(|record| forget_grant(record, StateKind::Done))),
        (
            "forgets the permit of what is released",
            GRANT,
            Shown(|record| forget_grant(record, StateKind::Released)),
        ),
        ("forgets the permit of what is held", GRANT, Shown(|record| forget_grant(record, StateKind::Held))),
        (
            "knows half a permit id",
            GRANT,
            Shown(|record| {
                let grant = grant_mut(record);
                grant.permit_id = PermitId::new(grant.permit_id.get() >> 64);
            }),
        ),
        (
            "has no name for no owner",
            GRANT,
            Shown(|record| {
                let grant = grant_mut(record);
                if grant.owner.is_empty() {
                    grant.owner = "unknown".into();
                }
            }),
        ),
        (
            "rounds the moment of a grant",
            GRANT,
            Shown(|record| {
                let grant = grant_mut(record);
                grant.granted_at = Timestamp::from_micros(grant.granted_at.as_micros() / 1_000 * 1_000);
            }),
        ),
        (
            "grants anew with every write",
            GRANT,
            Shown(|record| {
                let version = record.version;
                grant_mut(record).fence = version;
            }),
        ),
    ]
}

fn open_grants() -> Vec<Row> {
    const OPEN: &str = "an_open_grant_is_stamped_in_every_state";
    vec![
        (
            "leaves the fence of what is settled open",
            OPEN,
            Shown(|record| {
                let (kind, version) = (record.state.kind(), record.version);
                let grant = grant_mut(record);
                if kind != StateKind::Running && grant.fence == version {
                    grant.fence = Version::new(0);
                }
            }),
        ),
        (
            "leaves the moment of a grant open",
            OPEN,
            Shown(|record| {
                let changed_at = record.changed_at;
                let grant = grant_mut(record);
                if grant.granted_at == changed_at {
                    grant.granted_at = Timestamp::from_micros(0);
                }
            }),
        ),
    ]
}

fn attempts_and_references() -> Vec<Row> {
    const PAST: &str = "past_attempts_come_back_in_every_state";
    const REFERENCES: &str = "references_come_back_in_their_order";
    vec![
        ("remembers six attempts", PAST, Shown(|record| record.past_attempts.truncate(6))),
        ("tells attempts backwards", PAST, Shown(|record| record.past_attempts.reverse())),
        (
            "forgets why attempts ended",
            PAST,
            Shown(|record| record.past_attempts.iter_mut().for_each(|past| past.reason = "".into())),
        ),
        (
            "takes every attempt for lapsed",
            PAST,
            Shown(|record| record.past_attempts.iter_mut().for_each(|past| past.end = AttemptEnd::Lapsed)),
        ),
        (
            "forgets attempts when done",
            PAST,
            Shown(|record| {
                if record.state.kind() == StateKind::Done {
                    record.past_attempts.clear();
                }
            }),
        ),
        ("sorts references", REFERENCES, Shown(|record| refer(record, |all| all.sort()))),
        (
            "knows one reference a kind",
            REFERENCES,
            Shown(|record| {
                refer(record, |all| {
                    let mut kinds = HashSet::new();
                    all.retain(|(kind, _)| kinds.insert(kind.clone()));
                });
            }),
        ),
        ("knows two references", REFERENCES, Shown(|record| refer(record, |all| all.truncate(2)))),
        (
            "forgets the kinds of references",
            REFERENCES,
            Shown(|record| refer(record, |all| all.iter_mut().for_each(|(kind, _)| kind.clear()))),
        ),
    ]
}

fn words_and_probes() -> Vec<Row> {
    const WORDS: &str = "words_of_the_callers_own_stay_its_own";
    const PROBE: &str = "the_moment_of_a_probe_comes_back";
    vec![
        (
            "keeps a kind as its word",
            WORDS,
            Shown(|record| {
                if let State::Done(done) = &mut record.state {
                    let kind = OutcomeKind::from_word(done.outcome.kind().as_str());
                    done.outcome = Outcome::new(kind, done.outcome.bytes().clone());
                }
            }),
        ),
        (
            "keeps a reason as its text",
            WORDS,
            Shown(|record| {
                if let State::Held(held) = &mut record.state {
                    held.reason = HoldReason::from_text(held.reason.as_str());
                }
            }),
        ),
        (
            "forgets probes",
            PROBE,
            Shown(|record| {
                if let State::Held(held) = &mut record.state {
                    held.probed_at = None;
                }
            }),
        ),
        (
            "takes what was never probed for probed",
            PROBE,
            Shown(|record| {
                if let State::Held(held) = &mut record.state {
                    held.probed_at.get_or_insert(held.held_at);
                }
            }),
        ),
    ]
}

fn grant_mut(record: &mut Record) -> &mut Grant {
    match &mut record.state {
        State::Running(running) => &mut running.grant,
        State::Done(done) => &mut done.grant,
        State::Released(released) => &mut released.grant,
        State::Held(held) => &mut held.grant,
    }
}

/// Shows records of this state as if they had been settled without keeping their grant.
fn forget_grant(record: &mut Record, kind: StateKind) {
    if record.state.kind() == kind {
        let grant = grant_mut(record);
        *grant = Grant::forgotten(grant.granted_at);
    }
}

/// Changes an outcome's references, each a kind and an id, and nothing else that it says.
fn refer(record: &mut Record, change: impl Fn(&mut Vec<(String, String)>)) {
    if let State::Done(done) = &mut record.state {
        let old = &done.outcome;
        let pairs =
            old.references().iter().map(|reference| (reference.kind.to_string(), reference.id.to_string()));
        let mut all: Vec<_> = pairs.collect();
        change(&mut all);
        let bare = Outcome::new(old.kind().clone(), old.bytes().clone());
        let bare = old.details_json().map_or(bare.clone(), |details| bare.details_text(details));
        done.outcome = all.into_iter().fold(bare, |outcome, (kind, id)| outcome.reference(kind, id));
    }
}
