//! `record_once`: what a claim would be told, with the outcome in place of the run.

use semel::Outcome;
use semel::machine::claim::{Ask, Recorded, record_once};
use semel::record::Record;

use super::case::{Found, first_outcome, other_outcome};
use super::claim::{Case, Permit, Told, Writes, expected, for_each_case, rule, steps_carried_over};
use super::expect::{self, Expected};

/// A retry whose first reply was lost, which no claim row knows of.
fn recorded_by_this_ask(case: &Case, outcome: &Outcome) -> bool {
    case.found == Found::Done
        && !case.found.is_gone(case.moment)
        && case.permit == Permit::Mine
        && *outcome == first_outcome()
}

fn expected_record(
    writes: Writes,
    case: &Case,
    found: Option<&Record>,
    ask: &Ask,
    outcome: &Outcome,
) -> Expected {
    let moment = case.moment;
    let at_once =
        |granted: Expected| granted.and_then(|(record, _)| expect::done_at_once(&record, outcome, moment));
    match (writes, found) {
        (Writes::FirstRun, _) => at_once(expect::first_run(ask, moment)),
        (Writes::NextRun, Some(record)) => {
            at_once(expect::next_run(case.found, record, ask, steps_carried_over(case), moment))
        }
        // Its own run was going on: the outcome ends that run, under that run's fence and policy.
        (Writes::Renewal, Some(record)) => expect::run_done(record, outcome, moment),
        _ => expected(writes, case, found, ask),
    }
}

#[test]
fn record_once_is_told_what_a_claim_would_be_told_unless_it_may_run() {
    let outcomes = [first_outcome(), other_outcome()];
    let mut combinations = 0;
    let mut retries = 0;
    for_each_case(|case, found, ask| {
        for outcome in &outcomes {
            let (answer, next) = if recorded_by_this_ask(case, outcome) {
                retries += 1;
                (Recorded::Recorded, None)
            } else {
                let (_, told, writes) = rule(case);
                let answer = if told == Told::Run {
                    Recorded::Recorded
                } else {
                    Recorded::Refused(told.in_full(case.moment))
                };
                (answer, expected_record(writes, case, found, ask, outcome))
            };
            let ruling = record_once(found, ask, outcome, case.moment.now());
            expect::check(ruling, &answer, next, case.moment, &(case, outcome));
            combinations += 1;
        }
    });
    println!("record_once: {combinations} combinations, {retries} of them retries of a lost reply");
    assert_eq!((combinations, retries), (414_720, 5_760));
}
