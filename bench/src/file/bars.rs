//! What the numbers must reach. A part that was not measured has no bars.

use super::results::{Disk, Expiry, Growth, Left, Opening, Rate, Throughput};
use super::who::Who;
use crate::args::Part;
use crate::report::{Bar, grouped};

const MANY_TIMES_BEST: f64 = 3.0;
const MANY_TIMES_SQLITE_PER_CALL: f64 = 30.0;
const SOME_TIMES_BEST: f64 = 1.5;
const LONE_CALLER_SHARE: f64 = 0.8;
const CLEAN_SECONDS_MAX: f64 = 1.5;
const KILLED_SECONDS_MAX: f64 = 4.0;
const BYTES_A_KEY_MAX: f64 = 64.0;
const EXPIRY_SHARE_MAX: f64 = 0.01;
const GROWTH_RATIO: f64 = 0.7;
const DISK_RATIO_MAX: f64 = 2.5;

/// The bars of throughput.
pub(super) fn of_throughput(found: &Throughput) -> Vec<Bar> {
    let times = |callers: usize, wanted: f64| {
        let best = best_peer(&found.rates, callers);
        let name = best.map_or("the best peer", |rate| rate.contestant);
        let times = best.map_or(f64::NAN, |rate| rate.store_times);
        Bar::at_least(
            format!("cycles, {} callers", grouped(callers as u64)),
            wanted,
            times,
            &format!("× {name}"),
        )
    };
    let per_call = rate(&found.rates, Who::SqlitePerCall, 1_024).map_or(f64::NAN, |rate| rate.store_times);
    let beside_per_call = format!("× {}", Who::SqlitePerCall.name());
    let share = found.raw.lone_caller_share;
    vec![
        times(1_024, MANY_TIMES_BEST),
        Bar::at_least(
            "cycles, 1,024 callers".to_owned(),
            MANY_TIMES_SQLITE_PER_CALL,
            per_call,
            &beside_per_call,
        ),
        times(64, SOME_TIMES_BEST),
        Bar::at_least("cycles, 1 caller".to_owned(), LONE_CALLER_SHARE, share, "× half the raw sync rate"),
    ]
}

/// The peer that the store has least to show against.
fn best_peer(rates: &[Rate], callers: usize) -> Option<&Rate> {
    let peers = Who::PEERS.into_iter().filter_map(|who| rate(rates, who, callers));
    peers.min_by(|one, other| one.store_times.total_cmp(&other.store_times))
}

fn rate(rates: &[Rate], who: Who, callers: usize) -> Option<&Rate> {
    rates.iter().find(|rate| (rate.contestant, rate.callers) == (who.name(), callers))
}

/// The bars of opening: of how long it takes, and of the memory that it takes.
pub(super) fn of_openings(openings: &[Opening], has: impl Fn(Part) -> bool) -> Vec<Bar> {
    let mut bars = Vec::new();
    let ours = || openings.iter().filter(|opening| opening.contestant == Who::SemelFile.name());
    if has(Part::Reopen) {
        let least = ours().map(|opening| opening.keys).min();
        for opening in ours().filter(|opening| Some(opening.keys) == least) {
            let (how, wanted) = match opening.left {
                Left::Clean => ("a clean stop", CLEAN_SECONDS_MAX),
                Left::Killed => ("kill -9", KILLED_SECONDS_MAX),
            };
            let name = format!("opening {} keys after {how}", grouped(opening.keys));
            bars.push(Bar::at_most(name, wanted, opening.seconds.median, " s"));
        }
    }
    if has(Part::Memory) {
        for opening in ours().filter(|opening| opening.left == Left::Clean) {
            let name = format!("resident memory a key, {} keys", grouped(opening.keys));
            let bar = Bar::at_most(name, BYTES_A_KEY_MAX, opening.resident_bytes, " bytes");
            let found = format!("{} ({:.0} of the allocator)", bar.found, opening.allocated_bytes);
            bars.push(Bar { found, ..bar });
        }
    }
    bars
}

/// The bar of removing keys.
pub(super) fn of_expiries(expiries: &[Expiry]) -> Vec<Bar> {
    let seconds = |who: Who| {
        let found = expiries.iter().find(|expiry| expiry.contestant == who.name());
        found.map_or(f64::NAN, |expiry| expiry.swept.seconds)
    };
    let share = seconds(Who::SemelFile) / seconds(Who::Sqlite);
    vec![Bar {
        name: "removing all keys after their retention".to_owned(),
        wanted: format!("at most {:.0}% of SQLite's time", EXPIRY_SHARE_MAX * 100.0),
        found: format!("{:.2}%", share * 100.0),
        reached: share <= EXPIRY_SHARE_MAX,
    }]
}

/// The bar of growing.
pub(super) fn of_growth(growth: &Growth) -> Vec<Bar> {
    let name = format!("cycles with {} keys", grouped(growth.large_keys));
    let beside = format!("× those with {}", grouped(growth.small_keys));
    vec![Bar::at_least(name, GROWTH_RATIO, growth.ratio, &beside)]
}

/// The bar of the disk; the worst look counts.
pub(super) fn of_disk(disk: &Disk) -> Vec<Bar> {
    let name = "disk used in a steady state, the worst look".to_owned();
    vec![Bar::at_most(name, DISK_RATIO_MAX, disk.ratios().max, "× live data")]
}

#[cfg(test)]
mod tests {
    use super::super::results::{DiskSample, RawRates, Swept, bytes_a_further_key};
    use super::*;
    use crate::report::Spread;

    fn rate(who: Who, callers: usize, store_times: f64) -> Rate {
        Rate {
            contestant: who.name(),
            callers,
            cycles: Spread::of(&[1.0]),
            claim_p50_us: 1.0,
            claim_p99_us: 1.0,
            cpu_us: 1.0,
            store_times,
        }
    }

    fn reached(bars: &[Bar]) -> Vec<bool> {
        bars.iter().map(|bar| bar.reached).collect()
    }

    #[test]
    fn throughput_is_judged_by_the_best_peer() {
        let rates = vec![
            rate(Who::Fjall, 1_024, 2.9),
            rate(Who::Redb, 1_024, 12.0),
            rate(Who::SqlitePerCall, 1_024, 31.0),
            rate(Who::Fjall, 64, 1.6),
        ];
        let raw =
            RawRates { zeroed: Spread::of(&[1.0]), growing: Spread::of(&[1.0]), lone_caller_share: 0.79 };
        let bars = of_throughput(&Throughput { rates, raw, neighbours_share: 0.0 });
        assert_eq!(reached(&bars), [false, true, true, false]);
        assert!(bars[0].wanted.ends_with(Who::Fjall.name()), "{}", bars[0].wanted);
    }

    #[test]
    fn what_was_not_measured_is_not_reached() {
        let raw = RawRates { zeroed: Spread::of(&[]), growing: Spread::of(&[]), lone_caller_share: f64::NAN };
        assert_eq!(
            reached(&of_throughput(&Throughput { rates: Vec::new(), raw, neighbours_share: 0.0 })),
            [false; 4]
        );
        assert_eq!(reached(&of_expiries(&[])), [false]);
    }

    #[test]
    fn openings_are_judged_by_how_the_store_was_left() {
        let opening = |keys, left, seconds: f64| Opening {
            contestant: Who::SemelFile.name(),
            keys,
            left,
            seconds: Spread::of(&[seconds]),
            resident_bytes: 60.0,
            anonymous_bytes: 60.0,
            allocated_bytes: 60.0,
        };
        let openings =
            [opening(10, Left::Clean, 1.6), opening(50, Left::Clean, 9.0), opening(10, Left::Killed, 3.9)];
        assert_eq!(reached(&of_openings(&openings, |_| true)), [false, true, true, true]);
        assert_eq!(reached(&of_openings(&openings, |part| part == Part::Reopen)), [false, true]);
        // 600 bytes for 10 keys and 3,000 for 50.
        assert_eq!(bytes_a_further_key(openings.iter()), Some(60.0));
    }

    #[test]
    fn removing_is_judged_beside_sqlite_and_the_disk_by_its_worst_look() {
        let swept = |seconds| Swept {
            removed: 1,
            seconds,
            longest_ms: 1.0,
            disk_bytes_before: 1,
            disk_bytes_after: 1,
        };
        let expiry = |who: Who, seconds| Expiry { contestant: who.name(), swept: swept(seconds) };
        assert_eq!(reached(&of_expiries(&[expiry(Who::SemelFile, 0.6), expiry(Who::Sqlite, 60.0)])), [true]);
        let look = |disk_bytes| DiskSample { live_records: 1, live_bytes: 100, disk_bytes };
        assert_eq!(reached(&of_disk(&Disk { written: 1, samples: vec![look(200), look(260)] })), [false]);
    }
}
