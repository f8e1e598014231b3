//! How many connections and requests there are, and no more than there may be.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
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
}

/// The place of one connection, free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    peers: Arc<Peers>,
    peer: IpAddr,
}

impl Peers {
    /// At most so many, and so many from one peer.
    pub fn new(max: usize, max_per_peer: usize) -> Arc<Self> {
        Arc::new(Self { open: Mutex::default(), emptied: Notify::new(), max, max_per_peer })
    }

    /// A place for one more connection; `None` if there is none, or the peer has too many.
    pub fn place(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let peer = network(peer);
        let mut open = self.open();
        if open.all >= self.max {
            return None;
        }
        let of_peer = open.by_peer.entry(peer).or_default();
        if *of_peer >= self.max_per_peer {
            return None;
        }
        *of_peer = of_peer.saturating_add(1);
        open.all = open.all.saturating_add(1);
        Some(Place { peers: Arc::clone(self), peer })
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
        open.all = open.all.saturating_sub(1);
        if let Some(of_peer) = open.by_peer.get_mut(&self.peer) {
            *of_peer = of_peer.saturating_sub(1);
            if *of_peer == 0 {
                open.by_peer.remove(&self.peer);
            }
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
        let held: Vec<_> = (0..2).filter_map(|_| peers.place(one)).collect();
        assert!(held.len() == 2 && peers.place(one).is_none());
        let third = peers.place(other).expect("has room");
        assert!(peers.place(other).is_none(), "all places are taken");
        drop(held);
        assert!(peers.count() == 1 && peers.place(one).is_some());
        drop(third);
        assert_eq!(peers.count(), 0);
    }

    #[test]
    fn addresses_of_one_network_are_one_peer() {
        let peers = Peers::new(9, 1);
        let held = peers.place("2001:db8::1".parse().expect("is an address"));
        assert!(held.is_some() && peers.place("2001:db8::ffff".parse().expect("is an address")).is_none());
        assert!(peers.place("2001:db8:0:1::1".parse().expect("is an address")).is_some());
    }
}
