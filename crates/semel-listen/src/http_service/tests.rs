//! What a connection counts: its requests, those given up, and its place among those of its peer.

use std::net::IpAddr;

use super::*;
use crate::places::Peers;

fn connection(peers: &Arc<Peers>) -> ConnectionInfo {
    let peer = SocketAddr::from(([192, 0, 2, 1], 4711));
    let place = peers.place(peer.ip()).expect("has a place");
    ConnectionInfo::new(peer, place, None)
}

#[tokio::test(start_paused = true)]
async fn only_a_request_that_is_dropped_before_its_end_counts_as_given_up() {
    let peers = Peers::new(9, 9);
    let (patient, impatient) = (connection(&peers), connection(&peers));
    for _ in 0..1_000 {
        patient.begin().expect("is served, however many it asks for").ended();
    }
    let begun = (0..1_000).filter_map(|_| impatient.begin().map(drop)).count();
    assert!(begun < 500, "{begun} were begun for a client that gives up all of them");
    assert!(impatient.begin().is_none() && patient.begin().is_some(), "each connection counts its own");
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert!(impatient.begin().is_some(), "it is served again in the next second");
}

#[test]
fn a_connection_keeps_its_place_from_its_first_request_on_and_for_as_long_as_anything_holds_it() {
    let peers = Peers::new(1, 1);
    let other: IpAddr = [192, 0, 2, 2].into();
    let silent = connection(&peers);
    let second = peers.place(other).expect("takes the place of one that asked for nothing");
    drop((silent, second));
    let asked = connection(&peers);
    asked.count_request();
    assert!(peers.place(other).is_none());
    let held_by_an_answer = asked.clone();
    drop(asked);
    assert!(peers.place(other).is_none(), "its answer is still on its way");
    drop(held_by_an_answer);
    assert_eq!(peers.count(), 0);
    assert!(peers.place(other).is_some());
}

#[test]
fn requests_and_what_holds_a_connection_are_counted() {
    let peers = Peers::new(1, 1);
    let connection = connection(&peers);
    assert_eq!(connection.activity(), (0, 1));
    connection.count_request();
    connection.count_request();
    let held = connection.clone();
    assert_eq!(connection.activity(), (2, 2));
    drop(held);
    assert_eq!(connection.activity(), (2, 1));
}
