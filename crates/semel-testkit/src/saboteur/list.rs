//! All saboteurs, by name and by the promise that they break.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::{Keep, Record, State, StateKind};
use semel::{Key, Outcome};

use super::fault::{Fault, LoadFault, Numbering, SwapFault};
use super::fields;
use super::store::Sabotaged;

/// A store that breaks a promise.
#[derive(Clone, Copy)]
pub struct Saboteur {
    /// What is wrong with it.
    pub name: &'static str,
    /// The promise that it breaks.
    pub breaks: &'static str,
    fault: Fault,
}

impl Saboteur {
    /// The store, empty.
    pub fn open(&self) -> Sabotaged {
        Sabotaged::new(self.fault)
    }
}

/// Every saboteur: at least one for each promise.
pub fn saboteurs() -> Vec<Saboteur> {
    [
        swaps(),
        batches(),
        stamps(),
        records(),
        fields::all(),
        moments(),
        loads(),
        sweeps(),
        keeps(),
        scans(),
        keys(),
    ]
    .into_iter()
    .flatten()
    .map(|(name, breaks, fault)| Saboteur { name, breaks, fault })
    .collect()
}

pub(super) type Row = (&'static str, &'static str, Fault);

const A_MOMENT: Keep = Keep::For(Duration::from_millis(1));

fn swaps() -> Vec<Row> {
    use Fault::{Swap, Versions};
    vec![
        ("acknowledges and drops", "a_swap_at_the_expected_version_replaces", Swap(SwapFault::Dropped)),
        (
            "makes what should be there",
            "a_swap_of_an_absent_record_must_expect_none",
            Swap(SwapFault::AbsentAnyway),
        ),
        (
            "ignores the version",
            "a_swap_of_a_present_record_must_expect_its_version",
            Swap(SwapFault::PresentAnyway),
        ),
        ("counts stale swaps", "a_stale_swap_changes_nothing", Swap(SwapFault::StaleCounted)),
        ("keeps what stale swaps ask", "a_stale_swap_changes_nothing", Swap(SwapFault::StaleKept)),
        ("hides who won", "stale_hands_back_the_record_that_won", Swap(SwapFault::StaleBlind)),
        ("hands back the draft", "stale_against_nothing_hands_back_none", Swap(SwapFault::StaleFlattered)),
        ("counts versions down", "versions_grow_with_every_write", Versions(Numbering::Shrinking)),
        ("counts each life anew", "versions_grow_over_a_swept_life", Versions(Numbering::Restarting)),
        ("checks, then sets", "of_many_swaps_at_one_version_one_wins", Swap(SwapFault::CheckedThenSet)),
    ]
}

fn batches() -> Vec<Row> {
    use Fault::Swap;
    vec![
        ("all or nothing", "one_stale_swap_does_not_undo_another", Swap(SwapFault::AllOrNothing)),
        ("answers backwards", "swaps_are_answered_in_their_order", Swap(SwapFault::Reversed)),
        ("checks a batch up front", "of_two_swaps_of_one_record_one_wins", Swap(SwapFault::CheckedUpFront)),
        ("refuses an empty batch", "an_empty_batch_is_answered", Swap(SwapFault::EmptyRefused)),
        ("locks as named", "overlapping_batches_are_all_answered", Swap(SwapFault::LockedAsNamed)),
    ]
}

fn stamps() -> Vec<Row> {
    use Fault::Shown;
    const STAMP: &str = "the_store_stamps_what_a_draft_leaves_open";
    vec![
        ("leaves the lease open", STAMP, Shown(|record| set_leased_at(record, Timestamp::from_micros(0)))),
        (
            "leaves first_seen_at open",
            STAMP,
            Shown(|record| record.first_seen_at = Timestamp::from_micros(0)),
        ),
        (
            "extends the lease with any write",
            "what_is_stamped_already_stays",
            Shown(|record| {
                set_leased_at(record, record.changed_at);
            }),
        ),
        (
            "slides retention",
            "what_is_stamped_already_stays",
            Shown(|record| {
                if let State::Done(done) = &mut record.state {
                    done.settled_at = record.changed_at;
                }
            }),
        ),
    ]
}

fn records() -> Vec<Row> {
    use Fault::Shown;
    const FIELDS: &str = "every_field_round_trips";
    const OUTCOME: &str = "an_outcome_is_replayed_byte_for_byte";
    vec![
        (
            "loses steps",
            FIELDS,
            Shown(|record| match &mut record.state {
                State::Running(running) => running.steps.clear(),
                State::Released(released) => released.steps.clear(),
                State::Held(held) => held.steps.clear(),
                State::Done(_) => {}
            }),
        ),
        ("loses mismatches", FIELDS, Shown(|record| record.mismatches.fingerprints.truncate(1))),
        ("loses duplicates", FIELDS, Shown(|record| record.duplicates.last_seen_at = None)),
        ("loses the first event", FIELDS, Shown(|record| record.first_event = None)),
        ("counts forgiven attempts", FIELDS, Shown(|record| record.attempts_forgiven = 0)),
        ("loses the fingerprint", FIELDS, Shown(|record| record.fingerprint = None)),
        (
            "rounds to milliseconds",
            FIELDS,
            Shown(|record| {
                record.retention =
                    Duration::from_millis(u64::try_from(record.retention.as_millis()).unwrap_or(0));
            }),
        ),
        ("cuts outcomes off", OUTCOME, Shown(|record| alter(record, |bytes| bytes.truncate(65_536)))),
        (
            "reads outcomes as text",
            OUTCOME,
            Shown(|record| {
                alter(record, |bytes| *bytes = String::from_utf8_lossy(bytes).into_owned().into_bytes());
            }),
        ),
        ("loses references", OUTCOME, Shown(strip)),
        (
            "folds the case of keys",
            "a_key_comes_back_whole",
            Shown(|record| rename(record, &str::to_lowercase)),
        ),
        (
            "cuts keys off",
            "a_key_comes_back_whole",
            Shown(|record| rename(record, &|name| name.chars().take(255).collect())),
        ),
    ]
}

fn moments() -> Vec<Row> {
    use Fault::Now;
    vec![
        ("runs backwards", "now_never_runs_backwards", Now(|now, count| back(now, count * 1_000_000))),
        (
            "is an hour behind itself",
            "now_is_never_before_what_it_speaks_of",
            Now(|now, _| back(now, 3_600_000_000)),
        ),
    ]
}

fn loads() -> Vec<Row> {
    use Fault::Load;
    const ORDER: &str = "load_answers_in_the_order_of_the_ids";
    vec![
        ("loads backwards", ORDER, Load(LoadFault::Reversed)),
        ("leaves out what is absent", ORDER, Load(LoadFault::AbsentLeftOut)),
        ("loads each id once", ORDER, Load(LoadFault::Deduplicated)),
        ("counts looks", "load_changes_nothing", Load(LoadFault::Counted)),
    ]
}

fn sweeps() -> Vec<Row> {
    use Fault::{Kept, Swept, Told};
    vec![
        ("sweeps nothing", "sweep_removes_what_is_past_its_keep", Swept(|_| 0)),
        (
            "sweeps nothing and is content",
            "sweep_removes_what_is_past_its_keep",
            Told(|swept| *swept = semel::store::Swept::default()),
        ),
        ("keeps everything", "sweep_removes_what_is_past_its_keep", Kept(|_, _| Keep::Forever)),
        ("sweeps what is live", "sweep_spares_what_is_within_its_keep", Kept(|_, _| A_MOMENT)),
        (
            "sweeps what is for ever",
            "sweep_spares_what_is_kept_for_ever",
            Kept(|_, keep| match keep {
                Keep::Forever => A_MOMENT,
                Keep::For(_) => keep,
            }),
        ),
        ("sweeps without a limit", "sweep_respects_its_limit", Swept(|_| usize::MAX)),
        ("never has more left", "more_left_is_honest", Told(|swept| swept.more_left = false)),
        ("always has more left", "more_left_is_honest", Told(|swept| swept.more_left = true)),
    ]
}

fn keeps() -> Vec<Row> {
    use Fault::{Kept, Swap};
    vec![
        ("keeps as first asked", "a_longer_keep_outlives_the_shorter_before_it", Kept(Option::unwrap_or)),
        (
            "never keeps shorter",
            "a_shorter_keep_ends_the_longer_before_it",
            Kept(|first, keep| match (first, keep) {
                (Some(Keep::For(first)), Keep::For(keep)) => Keep::For(first.max(keep)),
                _ => keep,
            }),
        ),
        (
            "for ever is for ever",
            "a_keep_ends_one_for_ever_before_it",
            Kept(|first, keep| match first {
                Some(Keep::Forever) => Keep::Forever,
                Some(Keep::For(_)) | None => keep,
            }),
        ),
        ("takes a key once", "a_claim_past_the_keep_runs", Swap(SwapFault::NeverAgain)),
    ]
}

fn scans() -> Vec<Row> {
    use Fault::{Page, Scan, States};
    const LAPSED: &str = "a_run_that_lapsed_under_hold_is_shown_as_held";
    const ALL: &str = "a_scan_shows_every_record_once_in_order";
    vec![
        ("scans unsorted", ALL, Page(|page| page.records.reverse())),
        ("skips a record a page", ALL, Page(|page| drop(page.records.pop()))),
        ("shows a record twice", ALL, Page(|page| page.records.extend(page.records.first().cloned()))),
        ("stops after one page", ALL, Page(|page| page.next = None)),
        ("starts over", "a_page_goes_on_after_where_the_last_ended", Scan(|scan| scan.after = None)),
        ("shows all at once", "a_page_respects_its_limit", Scan(|scan| scan.limit = usize::MAX)),
        (
            "hides what is done",
            "an_empty_filter_hides_nothing",
            Page(|page| {
                page.records.retain(|record| record.state.kind() != StateKind::Done);
            }),
        ),
        ("shows every tenant", "a_scope_shows_its_tenant_only", Scan(|scan| scan.filter.scope.clear())),
        (
            "knows one level of scope",
            "a_scope_shows_its_tenant_only",
            Scan(|scan| scan.filter.scope.truncate(1)),
        ),
        (
            "ignores the operation",
            "an_operation_or_a_name_shows_its_own_only",
            Scan(|scan| scan.filter.operation = None),
        ),
        (
            "ignores the name",
            "an_operation_or_a_name_shows_its_own_only",
            Scan(|scan| scan.filter.name = None),
        ),
        ("ignores states", "states_show_their_own_only", Scan(|scan| scan.filter.states.clear())),
        (
            "goes by the state that is stored",
            LAPSED,
            States(|states, record, _| states.contains(&record.state.kind())),
        ),
        (
            "shows a lapsed run as running and as held",
            LAPSED,
            States(|states, record, now| {
                states.contains(&record.state.kind()) || states.contains(&record.kind_at(now))
            }),
        ),
        (
            "takes every run under hold for held",
            LAPSED,
            States(|states, record, _| states.contains(&record.kind_at(Timestamp::from_micros(u64::MAX)))),
        ),
        (
            "takes every lapsed run for held",
            LAPSED,
            States(|states, record, now| {
                let lapsed = matches!(&record.state, State::Running(running) if !running.lease_is_good(now));
                states.contains(&if lapsed { StateKind::Held } else { record.state.kind() })
            }),
        ),
        ("knows one state", "states_show_their_own_only", Scan(|scan| scan.filter.states.truncate(1))),
        (
            "ignores the moment",
            "a_moment_shows_what_was_seen_before_it",
            Scan(|scan| scan.filter.first_seen_before = None),
        ),
    ]
}

fn keys() -> Vec<Row> {
    use Fault::Shared;
    vec![
        (
            "joins keys",
            "keys_that_are_split_otherwise_are_apart",
            Shared(|key| {
                let scope: String = key.scope().collect();
                format!("{scope}{}{}", key.operation(), key.name())
            }),
        ),
        ("mixes tenants", "tenants_are_apart", Shared(|key| format!("{} {}", key.operation(), key.name()))),
        (
            "digests names too short",
            "names_that_look_alike_are_apart",
            Shared(|key| {
                let scope: Vec<_> = key.scope().collect();
                format!("{scope:?} {} {}", key.operation(), key.name().len())
            }),
        ),
        (
            "folds the case of names",
            "names_that_look_alike_are_apart",
            Shared(|key| {
                let scope: Vec<_> = key.scope().collect();
                format!("{scope:?} {} {}", key.operation(), key.name().to_lowercase())
            }),
        ),
    ]
}

fn back(now: Timestamp, micros: u64) -> Timestamp {
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}

fn set_leased_at(record: &mut Record, moment: Timestamp) {
    if let State::Running(running) = &mut record.state {
        running.leased_at = moment;
    }
}

/// Changes an outcome's bytes and nothing else that it says.
fn alter(record: &mut Record, alter: impl Fn(&mut Vec<u8>)) {
    if let State::Done(done) = &mut record.state {
        let old = &done.outcome;
        let mut bytes = old.bytes().to_vec();
        alter(&mut bytes);
        let mut new = Outcome::new(old.kind().clone(), bytes);
        for reference in old.references() {
            new = new.reference(&*reference.kind, &*reference.id);
        }
        if let Some(details) = old.details_json().and_then(|text| serde_json::from_str(text).ok()) {
            new = new.details(&details);
        }
        done.outcome = new;
    }
}

/// Keeps an outcome's kind and bytes, and nothing else that it says.
fn strip(record: &mut Record) {
    if let State::Done(done) = &mut record.state {
        done.outcome = Outcome::new(done.outcome.kind().clone(), done.outcome.bytes().clone());
    }
}

fn rename(record: &mut Record, change: &dyn Fn(&str) -> String) {
    if let Ok(key) = Key::scoped(record.key.scope(), record.key.operation(), &change(record.key.name())) {
        record.key = key;
    }
}
