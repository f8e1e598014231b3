//! What is found after a death: in the store, at the broker, and of effects.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The state of an event's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Done,
    Released,
    Held,
}

/// What the next victim says before it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// The committed offset.
    pub(super) offset: Option<u64>,
    /// Up to where the broker says that everything was acknowledged.
    pub(super) floor: Option<u64>,
    /// The records of events, each with its attempt.
    pub(super) records: BTreeMap<u64, (State, u64)>,
    /// The effects of events, each by its attempt.
    pub(super) effects: BTreeMap<u64, Vec<u64>>,
}

impl Look {
    /// Takes one line in; `false` once it was the last.
    pub(super) fn hear(&mut self, line: &str) -> Result<bool> {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["offset", position] => self.offset = Some(position.parse()?),
            ["floor", position] => self.floor = Some(position.parse()?),
            ["record", event, state, attempt] => {
                let state = match state {
                    "running" => State::Running,
                    "done" => State::Done,
                    "released" => State::Released,
                    "held" => State::Held,
                    _ => bail!("a record that is `{state}`"),
                };
                self.records.insert(event.parse()?, (state, attempt.parse()?));
            }
            ["row", event, attempt] => self.effect(event, attempt)?,
            ["looked"] => return Ok(false),
            _ => bail!("the victim said `{line}`"),
        }
        Ok(true)
    }

    /// Takes in the effects that are lines of a file.
    pub(super) fn read_effects(&mut self, file: &Path) -> Result<()> {
        if !file.exists() {
            return Ok(());
        }
        let text = std::fs::read_to_string(file).context("cannot read the effects")?;
        for line in text.lines() {
            let (event, attempt) = line.split_once(' ').context("an effect that was cut off")?;
            self.effect(event, attempt)?;
        }
        Ok(())
    }

    fn effect(&mut self, event: &str, attempt: &str) -> Result<()> {
        self.effects.entry(event.parse()?).or_default().push(attempt.parse()?);
        Ok(())
    }

    pub(super) fn has_receipt(&self, event: u64) -> bool {
        self.records.get(&event).is_some_and(|(state, _)| *state == State::Done)
    }

    pub(super) fn effects_of(&self, event: u64) -> &[u64] {
        self.effects.get(&event).map_or(&[], Vec::as_slice)
    }

    /// Those that wait for somebody to look.
    pub(super) fn held(&self) -> impl Iterator<Item = u64> {
        self.records.iter().filter(|(_, (state, _))| *state == State::Held).map(|(event, _)| *event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_victim_says_is_understood_to_the_last_word() {
        let mut look = Look::default();
        for line in ["offset 40", "floor 3", "record 7 done 2", "record 8 held 1", "row 7 1", "row 7 2"] {
            assert!(look.hear(line).unwrap());
        }
        assert!(!look.hear("looked").unwrap());
        assert_eq!((look.offset, look.floor), (Some(40), Some(3)));
        assert!(look.has_receipt(7) && !look.has_receipt(8) && !look.has_receipt(9));
        assert_eq!((look.effects_of(7), look.effects_of(8)), (&[1, 2][..], &[][..]));
        assert_eq!(look.held().collect::<Vec<_>>(), [8]);
        for line in ["record 7 gone 1", "offset", "hello", "row x 1"] {
            assert!(look.hear(line).is_err(), "{line}");
        }
    }
}
