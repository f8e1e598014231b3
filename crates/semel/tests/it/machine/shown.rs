//! What a record shows of itself, and what it never shows.

use semel::record::StateKind;

use super::case::{Found, MINE, Prints, first_outcome, record, steps};

#[test]
fn every_state_has_its_word() {
    let found = [Found::RunningRerun, Found::Done, Found::Released, Found::Held];
    let words = found.map(|found| record(found, Prints::Same, 0).unwrap().state.kind());
    assert_eq!(words, StateKind::ALL);
    assert_eq!(words.map(StateKind::as_str), ["running", "done", "released", "held"]);
}

#[test]
fn only_a_done_record_has_an_outcome() {
    for found in Found::ALL {
        let record = record(found, Prints::Same, 0);
        let outcome = record.as_ref().and_then(|record| record.outcome());
        assert_eq!(outcome, (found == Found::Done).then(first_outcome).as_ref(), "{found:?}");
    }
}

#[test]
fn debug_output_never_shows_a_permit_id_or_the_value_of_a_step() {
    assert_eq!(format!("{MINE:?}"), "PermitId(…)");
    assert_eq!(format!("{:?}", steps()), "[Step(reserve, 3 bytes), Step(charge, 3 bytes)]");
}
