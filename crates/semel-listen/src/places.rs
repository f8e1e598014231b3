//! How many connections and requests there are, and no more than there may be.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// How many requests are in flight.
#[derive(Debug)]
pub struct InFlight {
    count: AtomicUsize,
    max: usize,
    emptied: Notify,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct OneInFlight(Arc<InFlight>);

impl InFlight {
    /// At most so many.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { count: AtomicUsize::new(0), max, emptied: Notify::new() })
    }

    /// One more, unless there are too many.
    pub fn enter(self: &Arc<Self>) -> Option<OneInFlight> {
        let entered = self.enter_anyway();
        (self.count() <= self.max).then_some(entered)
    }

    /// One more, in place of one that was let in before.
    pub fn enter_anyway(self: &Arc<Self>) -> OneInFlight {
        self.count.fetch_add(1, Ordering::AcqRel);
        OneInFlight(Arc::clone(self))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until there are none.
    pub async fn emptied(&self) {
        none_left(&self.emptied, || self.count()).await;
    }
}

impl Drop for OneInFlight {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}

/// How many connections there are, and how many of them from each peer.
#[derive(Debug)]
pub struct Peers {
    open: Mutex<Open>,
    emptied: Notify,
    max: usize,
    max_per_peer: usize,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_peer: HashMap<IpAddr, usize>,
    /// Those that have not asked for anything yet, the oldest first.
    silent: BTreeMap<u64, Silent>,
    next: u64,
}

/// A connection that has not asked for anything yet.
#[derive(Debug)]
struct Silent {
    peer: IpAddr,
    eviction: Arc<Eviction>,
}

/// Whether a connection has lost its place to another one.
#[derive(Debug, Default)]
pub(crate) struct Eviction {
    has_happened: AtomicBool,
    notice: Notify,
}

impl Eviction {
    /// Waits until the place is lost.
    pub(crate) async fn happened(&self) {
        self.notice.notified().await;
    }
}

/// The place of one connection, free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    peers: Arc<Peers>,
    peer: IpAddr,
    number: u64,
    eviction: Arc<Eviction>,
}

impl Place {
    /// When it is lost to another connection.
    pub(crate) fn eviction(&self) -> Arc<Eviction> {
        Arc::clone(&self.eviction)
    }

    /// Its connection has asked for something, and keeps it from now on.
    pub(crate) fn asked(&self) {
        self.peers.open().silent.remove(&self.number);
    }
}

impl Open {
    /// Takes the place of the connection that has been silent for the longest: of all, or of one peer.
    fn evict(&mut self, of: Option<IpAddr>) -> bool {
        let oldest = self.silent.iter().find(|(_, silent)| of.is_none_or(|peer| peer == silent.peer));
        let Some(silent) = oldest.map(|(number, _)| *number).and_then(|number| self.silent.remove(&number))
        else {
            return false;
        };
        self.leave(silent.peer);
        silent.eviction.has_happened.store(true, Ordering::Release);
        silent.eviction.notice.notify_one();
        metrics::counter!(semel::metrics::CONNECTIONS_EVICTED.name).increment(1);
        true
    }

    fn leave(&mut self, peer: IpAddr) {
        self.all = self.all.saturating_sub(1);
        if let Some(of_peer) = self.by_peer.get_mut(&peer) {
            *of_peer = of_peer.saturating_sub(1);
            if *of_peer == 0 {
                self.by_peer.remove(&peer);
            }
        }
    }
}

impl Peers {
    /// At most so many, and so many from one peer.
    pub fn new(max: usize, max_per_peer: usize) -> Arc<Self> {
        Arc::new(Self { open: Mutex::default(), emptied: Notify::new(), max, max_per_peer })
    }

    /// A place for one more connection. If there is none, or the peer has too many, the one that has been silent for the longest
    /// loses its own: connections that send no request must not keep out those that do. `None` if all have asked for something.
    pub fn place(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let peer = network(peer);
        let mut open = self.open();
        let of_peer = open.by_peer.get(&peer).copied().unwrap_or_default();
        let has_place = (of_peer < self.max_per_peer || open.evict(Some(peer)))
            && (open.all < self.max || open.evict(None));
        if !has_place {
            return None;
        }
        let of_peer = open.by_peer.entry(peer).or_default();
        *of_peer = of_peer.saturating_add(1);
        open.all = open.all.saturating_add(1);
        let (number, eviction) = (open.next, Arc::<Eviction>::default());
        open.next = open.next.saturating_add(1);
        open.silent.insert(number, Silent { peer, eviction: Arc::clone(&eviction) });
        Some(Place { peers: Arc::clone(self), peer, number, eviction })
    }

    /// Makes the connection give way that has been silent for the longest, if there is one.
    pub(crate) fn evict_one(&self) -> bool {
        self.open().evict(None)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.open().all
    }

    /// Waits until there are none.
    pub async fn emptied(&self) {
        none_left(&self.emptied, || self.count()).await;
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.peers.open();
        open.silent.remove(&self.number);
        if !self.eviction.has_happened.load(Ordering::Acquire) {
            open.leave(self.peer);
        }
        if open.all == 0 {
            self.peers.emptied.notify_waiters();
        }
    }
}

/// Whoever has one address of IPv6 has the 2^64 next to it, too.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Waits until there are none.
async fn none_left(emptied: &Notify, count: impl Fn() -> usize) {
    loop {
        // Asked for before looking: a notice between the two is not missed.
        let emptied = emptied.notified();
        if count() == 0 {
            return;
        }
        emptied.await;
    }
}

#[cfg(test)]
mod waiting_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_enters_while_it_is_full() {
        let in_flight = InFlight::new(1);
        let one = in_flight.enter().expect("has room");
        assert!(in_flight.enter().is_none());
        assert_eq!(in_flight.count(), 1, "whoever was turned away does not count");
        drop(one);
        in_flight.emptied().await;
        assert!(in_flight.enter().is_some());
    }

    #[test]
    fn one_peer_cannot_take_every_place() {
        let peers = Peers::new(3, 2);
        let [one, other] =
            ["10.0.0.1", "10.0.0.2"].map(|peer| peer.parse::<IpAddr>().expect("is an address"));
        let held: Vec<_> = (0..2).filter_map(|_| peers.place(one)).inspect(Place::asked).collect();
        assert!(held.len() == 2 && peers.place(one).is_none());
        let third = peers.place(other).expect("has room");
        third.asked();
        assert!(peers.place(other).is_none(), "all places are taken");
        drop(held);
        assert!(peers.count() == 1 && peers.place(one).is_some());
        drop(third);
        assert_eq!(peers.count(), 0);
    }

    #[test]
    fn the_connection_that_was_silent_for_the_longest_gives_way() {
        let peers = Peers::new(3, 3);
        let peer: IpAddr = "10.0.0.1".parse().expect("is an address");
        let held: Vec<_> = (0..3).filter_map(|_| peers.place(peer)).collect();
        held[0].asked();
        let fourth = peers.place(peer).expect("has the place of the second");
        let lost: Vec<_> =
            held.iter().map(|place| place.eviction.has_happened.load(Ordering::Acquire)).collect();
        assert_eq!((lost, peers.count()), (vec![false, true, false], 3));
        fourth.asked();
        assert!(peers.place(peer).is_some(), "the third gives way");
        drop(held);
        assert_eq!(peers.count(), 1, "what was lost is not given back twice");
    }

    #[test]
    fn addresses_of_one_network_are_one_peer() {
        let peers = Peers::new(9, 1);
        let held = peers.place("2001:db8::1".parse().expect("is an address"));
        held.iter().for_each(Place::asked);
        assert!(held.is_some() && peers.place("2001:db8::ffff".parse().expect("is an address")).is_none());
        assert!(peers.place("2001:db8:0:1::1".parse().expect("is an address")).is_some());
    }

    #[test]
    fn a_peer_over_its_bound_takes_no_place_of_another_peer() {
        let peers = Peers::new(9, 1);
        let [one, other] =
            ["10.0.0.1", "10.0.0.2"].map(|peer| peer.parse::<IpAddr>().expect("is an address"));
        let held = [other, one, one].map(|peer| peers.place(peer).expect("has a place"));
        let lost = held.each_ref().map(|place| place.eviction.has_happened.load(Ordering::Acquire));
        assert_eq!(lost, [false, true, false], "only the peer's own silent connection gives way");
    }
}
