//! The claim table: sixteen rows, and every combination of what a claim depends on.

use std::time::Duration;

use semel::machine::claim::{Ask, Claimed, Probe, Reentry, claim};
use semel::record::Record;
use semel::{Lapse, Outcome};

use super::case::{Found, LEASE_END, MINE, Moment, OTHERS, Prints, key, record, steps};
use super::expect::{self, Expected};

/// What is left of `attempts_max` for a record that had three runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempts {
    Unbounded,
    OneLeft,
    JustUsedUp,
    LongUsedUp,
    OneLeftByPardon,
    UsedUpAfterPardon,
}

impl Attempts {
    const ALL: [Self; 6] = [
        Self::Unbounded,
        Self::OneLeft,
        Self::JustUsedUp,
        Self::LongUsedUp,
        Self::OneLeftByPardon,
        Self::UsedUpAfterPardon,
    ];

    fn max(self) -> Option<u32> {
        match self {
            Self::Unbounded => None,
            Self::OneLeft => Some(4),
            Self::JustUsedUp => Some(3),
            Self::LongUsedUp | Self::OneLeftByPardon | Self::UsedUpAfterPardon => Some(1),
        }
    }

    fn attempts_forgiven(self) -> u32 {
        match self {
            Self::Unbounded | Self::OneLeft | Self::JustUsedUp | Self::LongUsedUp => 0,
            Self::OneLeftByPardon => 3,
            Self::UsedUpAfterPardon => 2,
        }
    }

    fn used_up(self) -> bool {
        matches!(self, Self::JustUsedUp | Self::LongUsedUp | Self::UsedUpAfterPardon)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    Mine,
    Another,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Same,
    Another,
}

/// One claim, in words.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) found: Found,
    pub(super) moment: Moment,
    pub(super) prints: Prints,
    pub(super) attempts: Attempts,
    pub(super) permit: Permit,
    pub(super) owner: Owner,
    pub(super) reentry: Reentry,
    pub(super) lapse: Lapse,
    pub(super) probe: Probe,
}

impl Case {
    fn running(&self) -> bool {
        self.found.is_running() && !self.moment.lease_lapsed()
    }

    fn lapsed(&self, found: Found) -> bool {
        self.found == found && self.moment.lease_lapsed()
    }

    /// Held or lapsed under hold, for a reason that a probe may clear up.
    fn in_doubt(&self) -> bool {
        self.lapsed(Found::RunningHold) || matches!(self.found, Found::Held | Found::HeldProbed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Run,
    Replay,
    Busy,
    Mismatch,
    Held,
    Probe,
}

impl Told {
    pub(super) fn in_full(self, moment: Moment) -> Claimed {
        match self {
            Self::Run => Claimed::Run,
            Self::Replay => Claimed::Replay,
            Self::Busy => Claimed::Busy { retry_after: Duration::from_micros(LEASE_END - moment.micros()) },
            Self::Mismatch => Claimed::Mismatch,
            Self::Held => Claimed::Held,
            Self::Probe => Claimed::Probe,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    Nothing,
    FirstRun,
    NextRun,
    Renewal,
    Mismatch,
    HeldAsLapsed,
    HeldForProbe,
    HeldForAttempts,
    LandedOutcome,
}

type Row = (&'static str, fn(&Case) -> bool, Told, Writes);

/// Read from the top: the first row that fits is the rule.
#[rustfmt::skip]
const ROWS: [Row; 16] = [
    ("nothing, or settled past retention", |c| c.found.is_gone(c.moment), Told::Run, Writes::FirstRun),
    ("any live record but a released one, both fingerprints given and different",
        |c| c.found != Found::Released && c.prints.differ(), Told::Mismatch, Writes::Mismatch),
    ("running, lease good, same permit id", |c| c.running() && c.permit == Permit::Mine, Told::Run, Writes::Renewal),
    ("running, lease good, same owner and the claim says reentrant",
        |c| c.running() && c.owner == Owner::Same && c.reentry == Reentry::Allowed, Told::Run, Writes::NextRun),
    ("running, lease good, otherwise", Case::running, Told::Busy, Writes::Nothing),
    ("lapsed under rerun, attempts used up",
        |c| c.lapsed(Found::RunningRerun) && c.attempts.used_up(), Told::Held, Writes::HeldForAttempts),
    ("lapsed under rerun", |c| c.lapsed(Found::RunningRerun), Told::Run, Writes::NextRun),
    ("in doubt, the caller brings a probe and none was asked lately",
        |c| c.in_doubt() && c.found != Found::HeldProbed && c.probe == Probe::Offered,
        Told::Probe, Writes::HeldForProbe),
    ("in doubt, it landed", |c| c.in_doubt() && c.probe == Probe::Landed(landed()),
        Told::Replay, Writes::LandedOutcome),
    ("in doubt, it did not land, attempts used up",
        |c| c.in_doubt() && c.probe == Probe::NotLanded && c.attempts.used_up(),
        Told::Held, Writes::HeldForAttempts),
    ("in doubt, it did not land", |c| c.in_doubt() && c.probe == Probe::NotLanded, Told::Run, Writes::NextRun),
    ("lapsed under hold, otherwise", |c| c.lapsed(Found::RunningHold), Told::Held, Writes::HeldAsLapsed),
    ("held, otherwise", |c| c.found.is_held(), Told::Held, Writes::Nothing),
    ("released, attempts used up", |c| c.found == Found::Released && c.attempts.used_up(),
        Told::Held, Writes::HeldForAttempts),
    ("released", |c| c.found == Found::Released, Told::Run, Writes::NextRun),
    ("done", |c| c.found == Found::Done, Told::Replay, Writes::Nothing),
];

pub(super) fn rule(case: &Case) -> (usize, Told, Writes) {
    let fits = ROWS.iter().enumerate().find(|(_, (_, fits, ..))| fits(case));
    let Some((row, &(_, _, told, writes))) = fits else { panic!("no row fits {case:?}") };
    (row, told, writes)
}

/// What a probe found.
fn landed() -> Outcome {
    Outcome::failure("landed")
}

pub(super) fn expected(writes: Writes, case: &Case, found: Option<&Record>, ask: &Ask) -> Expected {
    let moment = case.moment;
    match (writes, found) {
        (Writes::FirstRun, _) => expect::first_run(ask, moment),
        (Writes::Nothing, _) | (_, None) => None,
        (Writes::NextRun, Some(record)) => {
            expect::next_run(case.found, record, ask, steps_carried_over(case), moment)
        }
        (Writes::Renewal, Some(record)) => expect::renewed(record, ask.lease, moment),
        (Writes::Mismatch, Some(record)) => {
            expect::mismatched(case.found, record, ask.fingerprint.unwrap(), moment)
        }
        (Writes::HeldAsLapsed, Some(record)) => expect::held_as_lapsed(record, None, moment),
        (Writes::HeldForProbe, Some(record)) => expect::held_as_lapsed(record, Some(moment.now()), moment),
        (Writes::HeldForAttempts, Some(record)) => expect::held_for_attempts(case.found, record, moment),
        (Writes::LandedOutcome, Some(record)) => expect::found_done(case.found, record, &landed(), moment),
    }
}

/// Steps belong to a request: another one, which only a released key admits, starts without them.
pub(super) fn steps_carried_over(case: &Case) -> Vec<semel::record::Step> {
    if case.prints.differ() { Vec::new() } else { steps() }
}

/// Every combination, with the record and the ask that stand for it.
pub(super) fn for_each_case(mut visit: impl FnMut(&Case, Option<&Record>, &Ask)) {
    for found in Found::ALL {
        for (prints, attempts) in pairs(Prints::ALL, Attempts::ALL) {
            let record = record(found, prints, attempts.attempts_forgiven());
            for (permit, owner) in pairs([Permit::Mine, Permit::Another], [Owner::Same, Owner::Another]) {
                for (reentry, lapse) in
                    pairs([Reentry::Refused, Reentry::Allowed], [Lapse::Rerun, Lapse::Hold])
                {
                    for probe in probes() {
                        let moment = Moment::BeforeLeaseEnd;
                        let mut case =
                            Case { found, moment, prints, attempts, permit, owner, reentry, lapse, probe };
                        let ask = ask(&case);
                        for moment in Moment::ALL {
                            case.moment = moment;
                            visit(&case, record.as_ref(), &ask);
                        }
                    }
                }
            }
        }
    }
}

fn probes() -> [Probe; 5] {
    [Probe::None, Probe::Offered, Probe::Landed(landed()), Probe::NotLanded, Probe::CannotTell]
}

fn pairs<A: Copy, B: Copy, const M: usize, const N: usize>(
    first: [A; M],
    second: [B; N],
) -> impl Iterator<Item = (A, B)> {
    first.into_iter().flat_map(move |a| second.into_iter().map(move |b| (a, b)))
}

/// Somebody's first ask, without probe, bound or reentry.
pub(super) fn plain_ask() -> Ask {
    ask(&Case {
        found: Found::Absent,
        moment: Moment::BeforeLeaseEnd,
        prints: Prints::Same,
        attempts: Attempts::Unbounded,
        permit: Permit::Another,
        owner: Owner::Another,
        reentry: Reentry::Refused,
        lapse: Lapse::Rerun,
        probe: Probe::None,
    })
}

/// An ask whose every choice differs from the record's, so that one taken for the other shows.
fn ask(case: &Case) -> Ask {
    Ask {
        key: key(),
        fingerprint: case.prints.on_ask(),
        label: Some("PUT /charges".into()),
        permit_id: if case.permit == Permit::Mine { MINE } else { OTHERS },
        owner: if case.owner == Owner::Same { "worker-1" } else { "worker-2" }.into(),
        reentry: case.reentry,
        lease: Duration::from_micros(40),
        retention: Duration::from_micros(2_600),
        lapse: case.lapse,
        attempts_max: case.attempts.max(),
        first_event: Some("event-2".into()),
        probe: case.probe.clone(),
    }
}

#[test]
fn every_claim_is_ruled_as_the_table_says() {
    let mut combinations = 0;
    let mut rows_used = [0; ROWS.len()];
    for_each_case(|case, found, ask| {
        let (row, told, writes) = rule(case);
        let ruling = claim(found, ask, case.moment.now());
        let answer = told.in_full(case.moment);
        expect::check(ruling, &answer, expected(writes, case, found, ask), case.moment, case);
        combinations += 1;
        rows_used[row] += 1;
    });
    println!("claim: {combinations} combinations");
    for (row, used) in ROWS.iter().zip(rows_used) {
        println!("  {used:>7}  {}", row.0);
        assert!(used > 0, "no combination reaches the row `{}`", row.0);
    }
    assert_eq!(combinations, 207_360);
}
