//! What the numbers must reach.

use super::entry::{BARE, NGINX, PEERS, PROXY_FILE, SEMEL_FILE, SEMEL_MEMORY};
use super::load::Keys;
use super::rounds::Samples;
use crate::args::HttpPart;
use crate::report::Bar;

/// Of semel's layer, beside the bare handler.
const LAYER: [((&str, Keys), f64); 4] = [
    ((SEMEL_MEMORY, Keys::None), 0.97),
    ((SEMEL_MEMORY, Keys::New), 0.75),
    ((SEMEL_MEMORY, Keys::Done), 0.9),
    ((SEMEL_FILE, Keys::Done), 0.9),
];
/// Of semel's proxy, beside nginx.
const PROXY: [((&str, Keys), f64); 2] = [((PROXY_FILE, Keys::None), 0.6), ((PROXY_FILE, Keys::New), 0.3)];
/// With every guarantee on, not slower than those of others.
const PEER: f64 = 1.0;

/// Every bar of one part, and whether it is reached.
pub(super) fn judge(samples: &Samples, part: HttpPart) -> Vec<Bar> {
    let bar = |one: (&str, Keys), other: (&str, Keys), wanted| {
        let times = samples.times(part, one, other, |window| window.rate);
        let title = format!("{}, {}", one.0, one.1.words());
        Bar::at_least(title, wanted, times, &format!("× {}", other.0))
    };
    match part {
        HttpPart::Layer => {
            let bare = LAYER.map(|(who, wanted)| bar(who, (BARE, Keys::None), wanted));
            let peers = [Keys::New, Keys::Done].into_iter().flat_map(|keys| PEERS.map(|peer| (peer, keys)));
            bare.into_iter().chain(peers.map(|peer| bar((SEMEL_MEMORY, peer.1), peer, PEER))).collect()
        }
        HttpPart::Proxy => PROXY.map(|(who, wanted)| bar(who, (NGINX, Keys::None), wanted)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::Window;
    use super::super::rounds::Sample;
    use super::*;

    fn sample(round: u64, part: HttpPart, (name, keys): (&'static str, Keys), rate: f64) -> Sample {
        let window = Window {
            rate,
            p50_us: 1.0,
            p99_us: 1.0,
            server_cpu_us: 1.0,
            client_cpu_us: 1.0,
            runs: 1,
            next: 1,
        };
        Sample { round, part, name, keys, window }
    }

    #[test]
    fn a_contestant_is_compared_within_its_own_round() {
        let of = |round, who, rate| sample(round, HttpPart::Proxy, who, rate);
        let (nginx, proxy) = ((NGINX, Keys::None), (PROXY_FILE, Keys::New));
        // A half, three tenths and a tenth; the middle one counts, and not the ratio of the middle rates.
        let rates = [(0, 10.0, 5.0), (1, 1000.0, 300.0), (2, 100.0, 10.0)];
        let samples = rates.map(|(round, base, own)| [of(round, nginx, base), of(round, proxy, own)]);
        let bars = judge(&Samples(samples.concat()), HttpPart::Proxy);
        let [none, new] = bars.as_slice() else { panic!("{bars:?}") };
        assert!(new.reached && new.found == "0.30×" && new.wanted == "at least 0.3× nginx", "{new:?}");
        assert!(!none.reached, "what was not measured is not reached: {none:?}");
    }

    #[test]
    fn every_peer_has_to_be_reached_with_new_keys_and_with_replays() {
        let of = |who, rate| sample(0, HttpPart::Layer, who, rate);
        let peers =
            [Keys::New, Keys::Done].into_iter().flat_map(|keys| PEERS.map(|peer| of((peer, keys), 50.0)));
        let own = [
            (BARE, Keys::None),
            (SEMEL_MEMORY, Keys::None),
            (SEMEL_MEMORY, Keys::Done),
            (SEMEL_FILE, Keys::Done),
        ];
        let own = own.map(|who| of(who, 96.0)).into_iter().chain([of((SEMEL_MEMORY, Keys::New), 49.0)]);
        let bars = judge(&Samples(peers.chain(own).collect()), HttpPart::Layer);
        let reached: Vec<bool> = bars.iter().map(|bar| bar.reached).collect();
        assert_eq!(reached, [true, false, true, true, false, false, false, true, true, true], "{bars:?}");
    }
}
