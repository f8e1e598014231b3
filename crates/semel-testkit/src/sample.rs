//! Keys and asks to try a store with: unlike any other, so that a store may be shared.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::machine::Write;
use semel::machine::claim::{Ask, Probe, Reentry, claim, record_once};
use semel::record::PermitId;
use semel::{Error, ErrorKind, Key, Lapse, Outcome, Result};

/// The lease and the retention of an ask, unless a test changes them: longer than any test takes.
pub const LONG: Duration = Duration::from_mins(10);

/// The word, and something that makes it like no other.
pub fn unique(word: &str) -> String {
    format!("{word}-{:016x}", rand::random::<u64>())
}

/// A key that no other test has.
pub fn key(operation: &str) -> Result<Key> {
    Key::scoped(["semel-testkit"], operation, &unique(operation))
}

/// A permit id that no other caller has.
pub fn permit_id() -> PermitId {
    PermitId::new(rand::random())
}

/// A claim of this key under a fresh permit id, with nothing special about it.
pub fn ask(key: &Key) -> Ask {
    Ask {
        key: key.clone(),
        fingerprint: None,
        label: None,
        permit_id: permit_id(),
        owner: "testkit".into(),
        reentry: Reentry::Refused,
        lease: LONG,
        retention: LONG,
        lapse: Lapse::Rerun,
        attempts_max: None,
        first_event: None,
        probe: Probe::None,
    }
}

/// What the machine writes for the first claim of a key.
pub fn running(ask: &Ask) -> Result<Write> {
    written(claim(None, ask, NO_MOMENT).write)
}

/// What the machine writes for a key that is recorded at once.
pub fn done(ask: &Ask, outcome: &Outcome) -> Result<Write> {
    written(record_once(None, ask, outcome, NO_MOMENT).write)
}

/// What a ruling must have brought along for a test to go on.
pub fn written(write: Option<Write>) -> Result<Write> {
    write.ok_or_else(|| Error::new(ErrorKind::Invalid, "the machine had nothing to write; ask for a change"))
}

/// Nothing is found, so no moment is judged.
const NO_MOMENT: Timestamp = Timestamp::from_micros(1);
