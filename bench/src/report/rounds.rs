//! The driver of every measurement: interleaved rounds, with a progress bar.

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

use super::rows::{Case, Rows, Samples};

/// Measures every case, with what it comes with, once a round, group after group, and adds the samples to the rows.
///
/// Cases of one group are compared with each other, so they follow one another directly; another one starts each round,
/// because the first finds memory, disk and servers in another state than the last.
pub(crate) fn drive<T>(
    rounds: u64,
    groups: &[Vec<(Case, T)>],
    rows: &mut Rows,
    measure: &mut dyn FnMut(Case, &T) -> Result<Samples>,
) -> Result<()> {
    let cases: usize = groups.iter().map(Vec::len).sum();
    let bar = progress(cases as u64 * rounds);
    for round in 0..rounds {
        for group in groups {
            let first = usize::try_from(round)? % group.len().max(1);
            for (case, with) in group.iter().cycle().skip(first).take(group.len()) {
                let name = format!("{}, {case}", case.work);
                bar.set_message(name.clone());
                let samples = measure(*case, with).context(name)?;
                for (case, sample) in samples {
                    rows.add(case, sample);
                }
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn progress(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{msg:40} {wide_bar} {pos}/{len} {eta:>4}") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Sample;

    #[test]
    fn another_case_starts_each_round_and_every_case_has_a_sample_of_each() {
        let [a, b, c] = ["a", "b", "c"].map(|contestant| (Case::new("cycles", contestant), ()));
        let (mut rows, mut order) = (Rows::default(), String::new());
        drive(2, &[vec![c], vec![a, b]], &mut rows, &mut |case, ()| {
            order += case.contestant;
            Ok(vec![(case, Sample::from([(crate::report::Metric::PerSecond, 1.0)]))])
        })
        .unwrap();
        assert_eq!(order, "cabcba");
        assert!(rows.all().len() == 3 && rows.all().iter().all(|row| row.rounds.len() == 2), "{rows:?}");
        let failed = drive(1, &[vec![a]], &mut rows, &mut |_, ()| anyhow::bail!("down"));
        assert_eq!(format!("{:#}", failed.unwrap_err()), "cycles, a: down");
    }
}
