//! Connections that wait for a place.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use super::*;

fn is_pending(future: &mut std::pin::Pin<Box<impl Future<Output = ()>>>) -> bool {
    matches!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

#[test]
fn as_many_enter_as_may_and_not_one_more() {
    let in_flight = InFlight::new(3);
    let entered: Vec<_> = std::iter::from_fn(|| in_flight.enter()).take(9).collect();
    assert_eq!((entered.len(), in_flight.count()), (3, 3));
    let anyway = in_flight.enter_anyway();
    assert_eq!(in_flight.count(), 4, "an upgraded connection takes the place of its request");
    drop(entered);
    assert_eq!(in_flight.count(), 1);
    drop(anyway);
    assert_eq!(in_flight.count(), 0);
}

#[tokio::test]
async fn a_drain_hears_of_the_last_request_and_of_the_last_connection() {
    let (in_flight, peers) = (InFlight::new(9), Peers::new(9, 9));
    let requests = [in_flight.enter(), in_flight.enter()].map(|one| one.expect("has room"));
    let places = [1, 2].map(|last| peers.place([192, 0, 2, last].into()).expect("has a place"));
    let mut no_requests = Box::pin(in_flight.emptied());
    let mut no_connections = Box::pin(peers.emptied());
    let [first_request, last_request] = requests;
    let [first_place, last_place] = places;
    drop((first_request, first_place));
    assert!(is_pending(&mut no_requests) && is_pending(&mut no_connections));
    drop((last_request, last_place));
    no_requests.await;
    no_connections.await;
}

#[test]
fn a_connection_that_lost_its_place_leaves_none_behind_when_it_ends() {
    let peers = Peers::new(9, 9);
    let peer: IpAddr = [192, 0, 2, 1].into();
    let lost = peers.place(peer).expect("has a place");
    assert!(peers.evict_one());
    assert_eq!(peers.count(), 0);
    assert!(!peers.evict_one(), "there is no other");
    let next = peers.place(peer).expect("has a place");
    drop(lost);
    assert_eq!(peers.count(), 1);
    next.asked();
    assert!(!peers.evict_one(), "one that asked for something keeps its place");
}

#[test]
fn the_share_of_a_peer_is_free_again_once_its_connections_end() {
    let peers = Peers::new(9, 2);
    let peer: IpAddr = [192, 0, 2, 1].into();
    for _ in 0..3 {
        let held: Vec<_> = (0..2).filter_map(|_| peers.place(peer)).inspect(Place::asked).collect();
        assert_eq!(held.len(), 2);
        assert!(peers.place(peer).is_none());
        assert!(peers.place([192, 0, 2, 2].into()).is_some(), "others have places");
    }
}

#[test]
fn an_address_of_ipv4_is_one_peer_however_it_is_written() {
    let peers = Peers::new(9, 1);
    let held = peers.place([192, 0, 2, 1].into()).expect("has a place");
    held.asked();
    assert!(peers.place("::ffff:192.0.2.1".parse().expect("is an address")).is_none());
    assert!(peers.place("::ffff:192.0.2.2".parse().expect("is an address")).is_some());
}
