//! Quotas on a clock that the test moves.

use http::Request;

use super::*;
use crate::Principal;

const DAY: Duration = Duration::from_hours(24);

fn caller(name: &str) -> Caller {
    let name = name.to_owned();
    let principal = Principal::function(move |_| Some(name.clone()));
    principal.caller(&Request::new(()).into_parts().0).unwrap()
}

fn accounts(usage: &Usage) -> usize {
    usage.shards.iter().map(|shard| shard.lock().unwrap().accounts.len()).sum()
}

#[test]
fn new_keys_are_bounded_a_minute_and_come_back() {
    let quotas = Quotas { new_keys_per_minute: Some(3), ..Quotas::default() };
    let (usage, alice, start) = (Usage::default(), caller("alice"), Instant::now());
    for _ in 0..3 {
        assert_eq!(usage.is_over(&alice, &quotas, start), None);
        usage.count_key(&alice, &quotas, DAY, start);
    }
    let wait = usage.is_over(&alice, &quotas, start).unwrap();
    assert!((MINUTE..MINUTE + Duration::from_secs(2)).contains(&wait), "{wait:?}");
    assert!(usage.is_over(&alice, &quotas, start + Duration::from_secs(30)).unwrap() < wait);
    assert_eq!(usage.is_over(&alice, &quotas, start + wait), None);
}

#[test]
fn one_callers_use_is_nobody_elses() {
    let quotas = Quotas { records: Some(1), ..Quotas::default() };
    let (usage, start) = (Usage::default(), Instant::now());
    usage.count_key(&caller("alice"), &quotas, DAY, start);
    assert!(usage.is_over(&caller("alice"), &quotas, start).is_some());
    assert_eq!(usage.is_over(&caller("bob"), &quotas, start), None);
}

#[test]
fn records_and_bytes_count_for_their_retention() {
    let quotas = Quotas { records: Some(2), bytes: Some(100), ..Quotas::default() };
    let (usage, alice, start) = (Usage::default(), caller("alice"), Instant::now());
    usage.count_key(&alice, &quotas, DAY, start);
    usage.count_bytes(&alice, &quotas, DAY, 99, start);
    assert_eq!(usage.is_over(&alice, &quotas, start), None);
    usage.count_bytes(&alice, &quotas, DAY, 1, start);
    assert!(usage.is_over(&alice, &quotas, start + DAY).is_some());
    assert_eq!(usage.is_over(&alice, &quotas, start + DAY + DAY / 32), None);
    usage.count_key(&alice, &quotas, DAY, start);
    usage.count_key(&alice, &quotas, DAY, start);
    assert!(usage.is_over(&alice, &quotas, start).is_some());
}

#[test]
fn the_longest_wait_of_all_quotas_is_told() {
    let quotas = Quotas { new_keys_per_minute: Some(1), records: Some(1), bytes: None };
    let (usage, alice, start) = (Usage::default(), caller("alice"), Instant::now());
    usage.count_key(&alice, &quotas, DAY, start);
    assert!(usage.is_over(&alice, &quotas, start).unwrap() >= DAY);
}

#[test]
fn what_no_quota_bounds_is_not_counted() {
    let (usage, alice, start) = (Usage::default(), caller("alice"), Instant::now());
    usage.count_key(&alice, &Quotas::default(), DAY, start);
    usage.count_bytes(&alice, &Quotas::default(), DAY, 1 << 40, start);
    assert_eq!(usage.is_over(&alice, &Quotas::default(), start), None);
    let none = Quotas { records: Some(0), ..Quotas::default() };
    assert!(usage.is_over(&caller("nobody yet"), &none, start).is_some());
}

#[test]
fn a_caller_with_nothing_left_is_dropped() {
    let quotas = Quotas { records: Some(10), ..Quotas::default() };
    let (usage, start) = (Usage::default(), Instant::now());
    for n in 0..1_000 {
        usage.count_key(&caller(&n.to_string()), &quotas, MINUTE, start);
    }
    assert_eq!(accounts(&usage), 1_000);
    // Who comes back is dropped then; who does not, when somebody else of the same shard does.
    let later = start + MINUTE * 2;
    assert_eq!(usage.is_over(&caller("7"), &quotas, later), None);
    assert_eq!(accounts(&usage), 999);
    for n in 0..1_000 {
        usage.count_key(&caller(&format!("new {n}")), &quotas, MINUTE, later);
    }
    assert_eq!(accounts(&usage), 1_000);
}
