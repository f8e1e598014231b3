//! What was measured: one row a case, one sample a round, and the figures that are made of them.
use std::fmt;

use serde::{Deserialize, Serialize};

/// A quantity, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Cycles, replays, requests, events or syncs.
    PerSecond,
    /// The same over all of the time, until deferred work is done too.
    PerSecondWithDeferred,
    RequestsPerSecond,
    P50Us,
    P99Us,
    P999Us,
    LongestUs,
    /// Processor time of the measured process.
    CpuUs,
    ServerCpuUs,
    /// Bytes of the server's write-ahead log.
    WalBytes,
    ClientCpuUs,
    /// Processor time of writing what was deferred.
    DeferredCpuUs,
    Seconds,
    SecondsAfterKill,
    ListSeconds,
    StatsSeconds,
    LongestBatchMs,
    /// Records that a sweep removed.
    Removed,
    /// Segments of the log that were begun.
    Segments,
    Keys,
    KeysLoaded,
    KeysRun,
    Replays,
    AllocatedBytes,
    ResidentBytes,
    AnonymousBytes,
    PayloadBytes,
    OverheadBytes,
    LiveRecords,
    LiveBytes,
    DiskBytes,
    DiskBytesBefore,
    DiskPerLive,
    /// Resident bytes that a process has more than before it opened its store.
    GrownBytesBefore,
    GrownBytes,
}

pub(crate) type Sample = std::collections::BTreeMap<Metric, f64>;
pub(crate) type Samples = Vec<(Case, Sample)>;

/// Who was measured doing what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Case {
    /// What was done. The rows of one kind of work make one table.
    pub(crate) work: &'static str,
    pub(crate) contestant: &'static str,
    /// How its server or its requests were set; empty where there is one way only.
    pub(crate) setting: &'static str,
    /// Callers, threads, connections, keys, or events a batch; 0 where there is no such number.
    pub(crate) load: u64,
}

impl Case {
    pub(crate) const fn new(work: &'static str, contestant: &'static str) -> Self {
        Self { work, contestant, setting: "", load: 0 }
    }

    pub(crate) const fn setting(self, setting: &'static str) -> Self {
        Self { setting, ..self }
    }

    pub(crate) const fn load(self, load: u64) -> Self {
        Self { load, ..self }
    }

    pub(crate) const fn work(self, work: &'static str) -> Self {
        Self { work, ..self }
    }

    pub(crate) const fn contestant(self, contestant: &'static str) -> Self {
        Self { contestant, ..self }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setting = if self.setting.is_empty() { "" } else { "; " };
        write!(f, "{}{setting}{}", self.contestant, self.setting)
    }
}

/// One case, and its sample of every round.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) case: Case,
    pub(crate) rounds: Vec<Sample>,
}

impl Row {
    /// Median and range of the rounds; `None` if this row has no such number.
    pub(crate) fn spread(&self, metric: Metric) -> Option<Spread> {
        let values: Vec<f64> = self.rounds.iter().filter_map(|sample| sample.get(&metric).copied()).collect();
        (!values.is_empty()).then(|| Spread::of(&values))
    }

    pub(crate) fn median(&self, metric: Metric) -> f64 {
        self.spread(metric).map_or(f64::NAN, |spread| spread.median)
    }
}

/// All rows of a report, in the order in which they were first measured.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Rows(Vec<Row>);

impl Rows {
    pub(crate) fn add(&mut self, case: Case, sample: Sample) {
        match self.0.iter_mut().find(|row| row.case == case) {
            Some(row) => row.rounds.push(sample),
            None => self.0.push(Row { case, rounds: vec![sample] }),
        }
    }

    pub(crate) fn all(&self) -> &[Row] {
        &self.0
    }

    /// Puts the rows in this order; rows of the same key stay in the order in which they were measured.
    pub(crate) fn sort_by_key<K: Ord>(&mut self, key: impl Fn(Case) -> K) {
        self.0.sort_by_key(|row| key(row.case));
    }

    pub(crate) fn of(&self, work: &str) -> impl Iterator<Item = &Row> {
        self.0.iter().filter(move |row| row.case.work == work)
    }

    pub(crate) fn find(&self, case: Case) -> Option<&Row> {
        self.0.iter().find(|row| row.case == case)
    }

    pub(crate) fn median(&self, case: Case, metric: Metric) -> f64 {
        self.find(case).map_or(f64::NAN, |row| row.median(metric))
    }

    /// How many times the other's number this one's is: the median of the ratios of the same round, so that a slow spell of
    /// the machine counts for both. NaN if either was not measured.
    pub(crate) fn times(&self, one: Case, other: Case, metric: Metric) -> f64 {
        let rounds = |case| self.find(case).map_or(&[][..], |row| &row.rounds).iter();
        let ratios = rounds(one).zip(rounds(other));
        let ratios = ratios.filter_map(|(one, other)| Some(one.get(&metric)? / other.get(&metric)?));
        median(&ratios.collect::<Vec<_>>())
    }

    /// A bar on how many times the other's number this one's is.
    pub(crate) fn at_least(&self, name: String, wanted: f64, one: Case, other: Case) -> Bar {
        let times = self.times(one, other, Metric::PerSecond);
        Bar::at_least(name, wanted, times, &format!("× {}", other.contestant))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Self {
        Self {
            median: median(values),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// The middle value; of an even number of values, the mean of the two in the middle.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
    match (sorted.get(low), sorted.get(high)) {
        (Some(low), Some(high)) => f64::midpoint(*low, *high),
        _ => f64::NAN,
    }
}

/// A figure that must be reached.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) wanted: String,
    pub(crate) found: String,
    pub(crate) reached: bool,
}

impl Bar {
    /// Reached from `wanted` on. A unit that starts with `×` names what the number is a multiple of.
    pub(crate) fn at_least(name: String, wanted: f64, found: f64, unit: &str) -> Self {
        Self { reached: found >= wanted, ..Self::unjudged(name, "at least", wanted, found, unit) }
    }

    pub(crate) fn at_most(name: String, wanted: f64, found: f64, unit: &str) -> Self {
        Self { reached: found <= wanted, ..Self::unjudged(name, "at most", wanted, found, unit) }
    }

    fn unjudged(name: String, word: &str, wanted: f64, found: f64, unit: &str) -> Self {
        let found_unit = if unit.starts_with('×') { "×" } else { unit };
        // One decimal, or two where one would be another number.
        let short = format!("{wanted:.1}");
        let short = if short.parse() == Ok(wanted) { short } else { format!("{wanted:.2}") };
        let (wanted, found) = (format!("{word} {short}{unit}"), format!("{found:.2}{found_unit}"));
        Self { name, wanted, found, reached: false }
    }
}

/// A count as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "figures are read to three digits")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn rates(cases: &[(Case, &[f64])]) -> Rows {
        let mut rows = Rows::default();
        for (case, rates) in cases {
            rates.iter().for_each(|rate| rows.add(*case, Sample::from([(Metric::PerSecond, *rate)])));
        }
        rows
    }

    pub(crate) fn reached(bars: &[Bar]) -> Vec<bool> {
        bars.iter().map(|bar| bar.reached).collect()
    }

    #[test]
    fn the_median_is_in_the_middle_of_the_sorted_values() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0])), (2.0, 2.5));
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_case_is_compared_within_its_own_round() {
        let (own, peer) = (Case::new("cycles", "own").load(1), Case::new("cycles", "peer").load(1));
        // A half, three tenths and a tenth: the middle one counts, and not the ratio of the middle rates.
        let rows = rates(&[(peer, &[10.0, 1000.0, 100.0]), (own, &[5.0, 300.0, 10.0])]);
        let bar = rows.at_least("name".to_owned(), 0.3, own, peer);
        assert!(bar.reached && bar.found == "0.30×" && bar.wanted == "at least 0.3× peer", "{bar:?}");
        let spread = rows.find(peer).unwrap().spread(Metric::PerSecond);
        assert_eq!(spread, Some(Spread { median: 100.0, min: 10.0, max: 1000.0 }));
    }

    #[test]
    fn what_was_not_measured_is_not_reached() {
        let (own, peer) = (Case::new("cycles", "own"), Case::new("cycles", "peer"));
        let rows = rates(&[(own, &[9.0]), (peer, &[1.0])]);
        assert!(!rows.at_least(String::new(), 1.0, own, peer.load(2)).reached);
        assert!(!rows.at_least(String::new(), 1.0, own.setting("always"), peer).reached);
        assert!(rows.times(own, peer, Metric::CpuUs).is_nan() && rows.median(own, Metric::CpuUs).is_nan());
        assert!(!Bar::at_most(String::new(), 1.0, f64::NAN, "").reached);
    }

    #[test]
    fn a_bar_is_reached_or_missed_by_its_number() {
        let four = Bar::at_least("name".to_owned(), 4.0, 4.1, "× quick");
        assert!(four.reached && four.wanted == "at least 4.0× quick" && four.found == "4.10×", "{four:?}");
        assert!(!Bar::at_least(String::new(), 1.0, 0.99, "×").reached);
        let cpu = Bar::at_most("name".to_owned(), 0.35, 0.36, "× quick");
        assert!(!cpu.reached && cpu.wanted == "at most 0.35× quick" && cpu.found == "0.36×", "{cpu:?}");
        assert!(Bar::at_most(String::new(), 0.36, 0.36, "×").reached);
    }
}
