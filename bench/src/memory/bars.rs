//! What the numbers must reach.

use super::bound::{FORGETS, REFUSED};
use super::results::{BoundCase, Footprint, Rate, Work};
use super::rounds::{ENGINE, MAP, STORE, THREADS};
use crate::report::Bar;

const REPLAYS_TIMES_MAP: f64 = 1.0;
const CYCLES_TIMES_MAP: f64 = 1.0;
const STORE_TIMES_MAP: f64 = 3.0;
const OVERHEAD_BYTES_MAX: f64 = 256.0;
const P99_TIMES_HALF_MAX: f64 = 3.0;

/// Every bar, and whether it is reached.
pub(super) fn judge(rates: &[Rate], footprints: &[Footprint], bound: &[BoundCase]) -> Vec<Bar> {
    let mut bars = Vec::new();
    let speeds = [
        (ENGINE, Work::Replays, "replays", REPLAYS_TIMES_MAP),
        (ENGINE, Work::Cycles, "cycles", CYCLES_TIMES_MAP),
        (STORE, Work::Cycles, "cycles", STORE_TIMES_MAP),
    ];
    for (contestant, work, word, wanted) in speeds {
        for threads in THREADS {
            let is_it =
                |rate: &&Rate| (rate.contestant, rate.work, rate.threads) == (contestant, work, threads);
            let found = rates.iter().find(is_it).map_or(f64::NAN, |rate| rate.times_map.rate);
            let lean = rates.iter().find(is_it).map_or(f64::NAN, |rate| rate.times_lean.rate);
            bars.push(Bar {
                name: format!(
                    "{contestant}, {word}, {threads} thread{}",
                    if threads == 1 { "" } else { "s" }
                ),
                wanted: format!("at least {wanted:.1}× {MAP}"),
                found: format!("{found:.2}× ({lean:.2}× lean)"),
                reached: found >= wanted,
            });
        }
    }
    let overhead =
        footprints.iter().find(|found| found.contestant == STORE).map_or(f64::NAN, Footprint::overhead_bytes);
    bars.push(Bar {
        name: "bytes a settled record, beyond key and outcome".to_owned(),
        wanted: format!("at most {OVERHEAD_BYTES_MAX:.0}"),
        found: format!("{overhead:.0}"),
        reached: overhead <= OVERHEAD_BYTES_MAX,
    });
    for case in bound.iter().filter(|case| [REFUSED, FORGETS].contains(&case.name)) {
        bars.push(Bar {
            name: format!("p99 of a new claim, {}", case.name),
            wanted: format!("at most {P99_TIMES_HALF_MAX:.0}× half full"),
            found: format!("{:.2}×", case.times_half),
            reached: case.times_half <= P99_TIMES_HALF_MAX,
        });
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::super::results::Times;
    use super::*;

    fn rate(contestant: &'static str, work: Work, times_map: f64) -> Rate {
        Rate {
            contestant,
            work,
            threads: 1,
            median: 1.0,
            min: 1.0,
            max: 1.0,
            cpu_ns: 1.0,
            times_map: Times { rate: times_map, cpu: 1.0 },
            times_lean: Times { rate: 1.0, cpu: 1.0 },
        }
    }

    #[test]
    fn a_bar_is_reached_or_not_by_its_number() {
        let rates = [
            rate(ENGINE, Work::Replays, 1.0),
            rate(ENGINE, Work::Cycles, 0.99),
            rate(STORE, Work::Cycles, 3.2),
        ];
        let bound = [
            BoundCase { name: REFUSED, p50_us: 1.0, p99_us: 1.0, times_half: 3.0 },
            BoundCase { name: FORGETS, p50_us: 1.0, p99_us: 1.0, times_half: 3.1 },
        ];
        let footprint = Footprint {
            contestant: STORE.to_owned(),
            records: 1,
            allocated_bytes: 420.0,
            resident_bytes: 430.0,
            payload_bytes: 173.0,
        };
        let reached: Vec<_> = judge(&rates, &[footprint], &bound).iter().map(|bar| bar.reached).collect();
        // One thread, then two, for which there is no number here: what was not measured is not reached.
        assert_eq!(reached, [true, false, false, false, true, false, false, true, false]);
    }
}
