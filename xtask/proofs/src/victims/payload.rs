//! Outcomes that name themselves and whose every byte follows from that name.

use semel::Outcome;

/// What an outcome is called: the fence it was made under, a counter, and how many bytes it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload {
    pub(super) fence: u64,
    pub(super) counter: u64,
    pub(super) bytes: usize,
}

impl Payload {
    pub(super) fn name(self) -> String {
        format!("{}:{}:{}", self.fence, self.counter, self.bytes)
    }

    pub(super) fn outcome(self) -> Outcome {
        Outcome::success(fill(&self.name(), self.bytes)).reference("payload", self.name())
    }
}

/// The name of an outcome, if its bytes are the ones that go with it.
pub(super) fn read(outcome: &Outcome) -> String {
    let name = outcome.references().first().map_or("", |reference| &reference.id);
    let bytes = outcome.bytes();
    if fill(name, bytes.len()) == **bytes && name.ends_with(&format!(":{}", bytes.len())) {
        name.to_owned()
    } else {
        format!("garbled:{}", bytes.len())
    }
}

/// The name over and over, with a turn in each repetition so that a shifted block does not look right.
fn fill(name: &str, bytes: usize) -> Vec<u8> {
    let mut filled = Vec::with_capacity(bytes.saturating_add(name.len()));
    for turn in (0_u8..=u8::MAX).cycle() {
        // An empty name would never fill anything.
        if filled.len() >= bytes || name.is_empty() {
            break;
        }
        filled.extend(name.bytes().map(|letter| letter.wrapping_add(turn)));
    }
    filled.truncate(bytes);
    filled
}
