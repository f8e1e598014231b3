//! Where the minutes of a command went.

use std::time::{Duration, Instant};

use anyhow::Result;
use xtask::run::started;

/// The steps so far, each with its time. Printed when dropped, also after a failure.
#[derive(Default)]
pub(crate) struct Timetable {
    steps: Vec<(String, Duration)>,
}

impl Timetable {
    /// Does a step, and notes how long it took.
    #[expect(clippy::disallowed_methods, reason = "real time, for people to read")]
    pub(crate) fn time<T>(&mut self, name: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
        let started_at = Instant::now();
        let done = step();
        self.steps.push((name.to_owned(), started_at.elapsed()));
        done
    }
}

impl Drop for Timetable {
    fn drop(&mut self) {
        let whole: Duration = self.steps.iter().map(|(_, took)| *took).sum();
        started("where the minutes went");
        for (name, took) in
            self.steps.iter().map(|(name, took)| (name.as_str(), *took)).chain([("all", whole)])
        {
            eprintln!("{}", row(name, took));
        }
    }
}

fn row(name: &str, took: Duration) -> String {
    format!("    {name:<28}{:>4} min {:>2} s", took.as_secs() / 60, took.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_noted_whether_or_not_it_fails() {
        let mut timetable = Timetable::default();
        assert_eq!(timetable.time("one", || Ok(1)).unwrap(), 1);
        assert!(timetable.time("two", || anyhow::Result::<()>::Err(anyhow::anyhow!("no"))).is_err());
        assert_eq!(timetable.steps.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(row("tests", Duration::from_secs(125)), "    tests                          2 min  5 s");
    }
}
