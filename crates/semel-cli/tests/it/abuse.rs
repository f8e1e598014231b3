//! Attacks on the running proxy, a few of each: `cargo xtask prove` runs many.

use std::path::Path;

use proofs::attacks::{
    crowd, disconnects, kill, many_keys, proxy_kills, slow, slow_server, smuggling, waiting,
};

use crate::place::Place;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_semel"))
}

#[test]
fn a_client_that_hangs_up_at_any_byte_and_asks_again_is_never_served_twice() {
    let found = disconnects(binary(), 200, &|| ()).expect("no key is called for twice");
    assert!(found.replayed > 20 && found.ran > 20 && found.twice_without > 0, "{found}");
}

#[test]
fn no_request_is_read_in_two_ways() {
    let found = smuggling(binary(), proofs::attacks::shapes(), &|| ()).expect("all is read in one way");
    assert!(found.shapes > 200 && found.refused > 100 && found.answered > 100, "{found}");
}

#[test]
fn those_that_dawdle_keep_nobody_from_being_served() {
    let found = slow(binary(), 1_000, &|| ()).expect("others are served, and the slow are closed");
    assert!(found.slow == 1_000 && found.served == 200, "{found}");
}

#[test]
fn those_that_dawdle_before_the_claim_server_keep_nobody_from_being_served() {
    let found = slow_server(binary(), 1_000, &|| ()).expect("others are served, and the slow are closed");
    assert!(found.slow == 1_000 && found.served == 200, "{found}");
}

#[test]
fn those_who_wait_for_one_key_are_all_told_at_once() {
    let found = waiting(binary(), "memory:", 200, &|| ()).expect("all are told");
    // Far below what a caller waits that is not woken; how soon exactly is measured by the campaign.
    assert!(found.waiting == 200 && found.latest < found.control / 2, "{found}");
}

#[test]
fn a_caller_with_keys_without_end_is_held_back_by_its_quota_and_nobody_else_is() {
    let found = many_keys(binary(), 2_000, &|| ()).expect("others are served");
    assert!(found.quota.statuses.contains_key(&429) && !found.memory.statuses.contains_key(&429), "{found}");
}

#[test]
fn a_proxy_that_is_killed_forgets_nothing_that_it_acknowledged_and_runs_nothing_twice_at_once() {
    let found = kill(binary(), 1, &|| ()).expect("what was acknowledged is replayed");
    assert!(found.replayed >= 10 && found.reran >= 1 && found.held == 1, "{found}");
}

#[test]
fn a_proxy_that_is_killed_again_and_again_makes_no_effect_twice_and_with_a_probe_no_client_notices() {
    let found = proxy_kills(binary(), 10, &|| ()).expect("one effect and one answer each");
    assert!(found.probed.held == 0 && found.probed.retried > 10 && found.held.held > 0, "{found}");
}

#[test]
fn a_crowd_before_two_proxies_on_one_postgres_is_served_once() {
    let place = Place::postgres();
    let found = crowd(binary(), place.url(), 100, 3, &|| ()).expect("one call each");
    assert_eq!(found.replayed + found.busy, 3 * 99, "{found}");
}

#[test]
fn a_crowd_before_two_proxies_on_one_redis_is_served_once() {
    let place = Place::redis();
    let found = crowd(binary(), place.url(), 100, 3, &|| ()).expect("one call each");
    assert_eq!(found.replayed + found.busy, 3 * 99, "{found}");
}
