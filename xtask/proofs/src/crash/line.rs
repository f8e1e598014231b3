//! What the victim says, a line at a time. Its side of this is `victims::say`.

use anyhow::{Context, Result, bail};

/// One line. Moments and retentions are in microseconds, on the store's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The folder was opened.
    Opened { millis: u64 },
    /// This is in the store.
    Found { name: String, found: Found },
    /// That was all, and this late it was.
    Looked { now: u64, records: u64 },
    /// A claim is about to be made.
    Claiming { name: String, permit: u128 },
    /// It was granted.
    Granted { name: String, permit: u128, fence: u64, attempt: u32, now: u64 },
    /// It was answered with an outcome.
    Replayed { name: String, permit: u128, fence: u64, outcome: String },
    /// It was told that another runs.
    Busy { name: String, permit: u128 },
    /// A run is about to be ended; a release has no outcome.
    Ending { name: String, fence: u64, now: u64, retention: u64, outcome: Option<String> },
    /// It was.
    Ended { name: String, fence: u64 },
    /// The folder was not opened.
    Refused(String),
    /// Something happened that must not.
    Wrong(String),
}

/// One record as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) fence: u64,
    pub(super) attempt: u32,
    pub(super) state: State,
}

/// Where its work stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running(u128),
    Done(String),
    Released,
}

/// Reads one line, without its end.
pub(super) fn parse(text: &str) -> Result<Line> {
    let (word, rest) = text.split_once(' ').with_context(|| format!("no line of a victim: {text}"))?;
    let mut words = Words(rest.split(' '));
    let line = match word {
        "opened" => Line::Opened { millis: words.number()? },
        "looked" => Line::Looked { now: words.number()?, records: words.number()? },
        "found" => Line::Found { name: words.text()?, found: words.found()? },
        "claiming" => Line::Claiming { name: words.text()?, permit: words.permit()? },
        "granted" => Line::Granted {
            name: words.text()?,
            permit: words.permit()?,
            fence: words.number()?,
            attempt: u32::try_from(words.number()?)?,
            now: words.number()?,
        },
        "replayed" => Line::Replayed {
            name: words.text()?,
            permit: words.permit()?,
            fence: words.number()?,
            outcome: words.text()?,
        },
        "busy" => Line::Busy { name: words.text()?, permit: words.permit()? },
        "completing" | "releasing" => Line::Ending {
            name: words.text()?,
            fence: words.number()?,
            now: words.number()?,
            retention: words.number()?,
            outcome: if word == "completing" { Some(words.text()?) } else { None },
        },
        "done" | "released" => Line::Ended { name: words.text()?, fence: words.number()? },
        "refused" => Line::Refused(rest.to_owned()),
        "wrong" => Line::Wrong(rest.to_owned()),
        _ => bail!("no line of a victim: {text}"),
    };
    Ok(line)
}

struct Words<'a>(std::str::Split<'a, char>);

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<&'a str> {
        self.0.next().context("a victim's line is too short")
    }

    fn text(&mut self) -> Result<String> {
        self.next().map(str::to_owned)
    }

    fn number(&mut self) -> Result<u64> {
        Ok(self.next()?.parse()?)
    }

    fn permit(&mut self) -> Result<u128> {
        Ok(u128::from_str_radix(self.next()?, 16)?)
    }

    fn found(&mut self) -> Result<Found> {
        let word = self.next()?;
        let (fence, attempt) = (self.number()?, u32::try_from(self.number()?)?);
        let state = match word {
            "running" => State::Running(self.permit()?),
            "done" => State::Done(self.text()?),
            "released" => State::Released,
            other => bail!("no state of a record: {other}"),
        };
        Ok(Found { fence, attempt, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_as_it_was_meant() {
        let name = || "pool-7".to_owned();
        let of = |text| parse(text).unwrap();
        assert_eq!(of("opened 12"), Line::Opened { millis: 12 });
        assert_eq!(of("claiming pool-7 ff"), Line::Claiming { name: name(), permit: 255 });
        let granted = Line::Granted { name: name(), permit: 255, fence: 3, attempt: 1, now: 99 };
        assert_eq!(of("granted pool-7 ff 3 1 99"), granted);
        let found = Found { fence: 3, attempt: 1, state: State::Done("3:0:5".into()) };
        assert_eq!(of("found pool-7 done 3 1 3:0:5"), Line::Found { name: name(), found });
        let ending = Line::Ending { name: name(), fence: 3, now: 5, retention: 7, outcome: None };
        assert_eq!(of("releasing pool-7 3 5 7"), ending);
        assert_eq!(of("refused a b"), Line::Refused("a b".into()));
    }

    #[test]
    fn what_no_victim_says_is_an_error() {
        for text in ["", "done", "done pool-7", "granted pool-7 zz 1 1 1", "found pool-7 odd 1 1 -", "x y"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
