//! What the numbers must reach, beside the peer that semel has least to show against.

use super::results::Rate;
use crate::report::{Bar, grouped};

/// Cycles per second with so many callers, on servers that are set like this.
pub(super) fn cycles(rates: &[Rate], setting: &str, callers: usize, wanted: f64) -> Bar {
    let (name, times) = hardest(rates, setting, callers, |rate| rate.cycles.semel_times);
    Bar::at_least(title("cycles", setting, callers), wanted, times, &format!("× {name}"))
}

/// Replays per second.
pub(super) fn replays(rates: &[Rate], setting: &str, callers: usize, wanted: f64) -> Bar {
    let (name, times) = hardest(rates, setting, callers, |rate| rate.replays.semel_times);
    Bar::at_least(title("replays", setting, callers), wanted, times, &format!("× {name}"))
}

/// Processor time of a cycle in the process of the callers.
pub(super) fn cpu(rates: &[Rate], setting: &str, callers: usize, wanted: f64) -> Bar {
    let (name, times) = hardest(rates, setting, callers, |rate| -rate.cycles.semel_cpu_times);
    Bar::at_most(title("client CPU a cycle", setting, callers), wanted, -times, &format!("× {name}"))
}

fn title(what: &str, setting: &str, callers: usize) -> String {
    let setting = if setting.is_empty() { String::new() } else { format!(", {setting}") };
    format!("{what}, {} caller{}{setting}", grouped(callers as u64), if callers == 1 { "" } else { "s" })
}

/// The peer with the least of these, and how much that is. What was not measured is not reached.
fn hardest<'a>(
    rates: &'a [Rate],
    setting: &str,
    callers: usize,
    number: impl Fn(&Rate) -> f64,
) -> (&'a str, f64) {
    let peers =
        rates.iter().filter(|rate| !rate.is_semel() && (rate.setting, rate.callers) == (setting, callers));
    let numbers = peers.map(|rate| (rate.contestant, number(rate)));
    numbers.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or(("the best peer", f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::super::results::Work;
    use super::*;
    use crate::report::Spread;

    fn rate(contestant: &'static str, semel_times: f64, semel_cpu_times: f64) -> Rate {
        let work = Work {
            per_second: Spread::of(&[1.0]),
            sustained: 1.0,
            claim_p50_us: 1.0,
            claim_p99_us: 1.0,
            cpu_us: 1.0,
            semel_times,
            semel_sustained_times: semel_times,
            semel_cpu_times,
        };
        Rate { contestant, setting: "", callers: 256, cycles: work.clone(), replays: work }
    }

    #[test]
    fn the_hardest_peer_decides_and_semel_is_none() {
        let rates = [rate("semel", 1.0, 1.0), rate("slow", 9.0, 0.2), rate("quick", 4.1, 0.36)];
        let (four, five) = (cycles(&rates, "", 256, 4.0), replays(&rates, "", 256, 5.0));
        assert!(four.reached && four.wanted == "at least 4.0× quick" && four.found == "4.10×", "{four:?}");
        assert!(!five.reached, "{five:?}");
        let bar = cpu(&rates, "", 256, 0.35);
        assert!(!bar.reached && bar.wanted == "at most 0.35× quick" && bar.found == "0.36×", "{bar:?}");
        assert!(cpu(&rates, "", 256, 0.36).reached);
    }

    #[test]
    fn what_was_not_measured_is_not_reached() {
        assert!(!cycles(&[], "", 256, 4.0).reached && !cpu(&[], "", 256, 0.35).reached);
        assert!(!cycles(&[rate("peer", 9.0, 0.1)], "always", 256, 4.0).reached);
    }
}
