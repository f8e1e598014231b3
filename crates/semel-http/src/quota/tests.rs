//! Quotas on a clock that the test moves.

use http::Request;

use super::new_keys::MINUTE;
use super::*;
use crate::Principal;

const DAY: Duration = Duration::from_hours(24);

fn caller(name: &str) -> Caller {
    let name = name.to_owned();
    let principal = Principal::function(move |_| Some(name.clone()));
    principal.caller(&Request::new(()).into_parts().0).unwrap()
}

/// A key that no other call of this returned.
fn new() -> RecordId {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    RecordId::from_bytes(*semel::Fingerprint::of_parts([number.to_le_bytes()]).as_bytes())
}

fn accounts(usage: &Usage) -> usize {
    usage.shards.iter().map(|shard| shard.lock().unwrap().accounts.len()).sum()
}

#[test]
fn new_keys_are_bounded_a_minute_and_come_back() {
    let quotas = Quotas { new_keys_per_minute: Some(3), ..Quotas::default() };
    let (usage, alice, start) = (Usage::default(), caller("alice"), Instant::now());
    for _ in 0..3 {
        assert_eq!(usage.is_over(&alice, new(), &quotas, start), None);
        usage.count_key(&alice, new(), &quotas, DAY, start);
    }
    let wait = usage.is_over(&alice, new(), &quotas, start).unwrap();
    assert_eq!(wait, MINUTE);
    assert!(usage.is_over(&alice, new(), &quotas, start + Duration::from_secs(30)).unwrap() < wait);
    assert_eq!(usage.is_over(&alice, new(), &quotas, start + wait), None);
}

#[test]
fn one_callers_use_is_nobody_elses() {
    let quotas = Quotas { records: Some(1), ..Quotas::default() };
    let (usage, start) = (Usage::default(), Instant::now());
    usage.count_key(&caller("alice"), new(), &quotas, DAY, start);
    assert!(usage.is_over(&caller("alice"), new(), &quotas, start).is_some());
    assert_eq!(usage.is_over(&caller("bob"), new(), &quotas, start), None);
}

#[test]
fn records_and_bytes_count_for_their_retention() {
    let quotas = Quotas { records: Some(2), bytes: Some(100), ..Quotas::default() };
    let (usage, alice, start) = (Usage::default(), caller("alice"), Instant::now());
    usage.count_key(&alice, new(), &quotas, DAY, start);
    usage.count_bytes(&alice, &quotas, DAY, 99, start);
    assert_eq!(usage.is_over(&alice, new(), &quotas, start), None);
    usage.count_bytes(&alice, &quotas, DAY, 1, start);
    assert!(usage.is_over(&alice, new(), &quotas, start + DAY).is_some());
    assert_eq!(usage.is_over(&alice, new(), &quotas, start + DAY + DAY / 32), None);
    usage.count_key(&alice, new(), &quotas, DAY, start);
    usage.count_key(&alice, new(), &quotas, DAY, start);
    assert!(usage.is_over(&alice, new(), &quotas, start).is_some());
}

#[test]
fn the_longest_wait_of_all_quotas_is_told() {
    let quotas = Quotas { new_keys_per_minute: Some(1), records: Some(1), bytes: None };
    let (usage, alice, start) = (Usage::default(), caller("alice"), Instant::now());
    usage.count_key(&alice, new(), &quotas, DAY, start);
    assert!(usage.is_over(&alice, new(), &quotas, start).unwrap() >= DAY);
}

#[test]
fn what_no_quota_bounds_is_not_counted() {
    let (usage, alice, start) = (Usage::default(), caller("alice"), Instant::now());
    usage.count_key(&alice, new(), &Quotas::default(), DAY, start);
    usage.count_bytes(&alice, &Quotas::default(), DAY, 1 << 40, start);
    assert_eq!(usage.is_over(&alice, new(), &Quotas::default(), start), None);
    let none = Quotas { records: Some(0), ..Quotas::default() };
    assert!(usage.is_over(&caller("nobody yet"), new(), &none, start).is_some());
}

#[test]
fn a_caller_with_nothing_left_is_dropped() {
    let quotas = Quotas { records: Some(10), ..Quotas::default() };
    let (usage, start) = (Usage::default(), Instant::now());
    for n in 0..1_000 {
        usage.count_key(&caller(&n.to_string()), new(), &quotas, MINUTE, start);
    }
    assert_eq!(accounts(&usage), 1_000);
    // Who comes back is dropped then; who does not, when somebody else of the same shard does.
    let later = start + MINUTE * 2;
    assert_eq!(usage.is_over(&caller("7"), new(), &quotas, later), None);
    assert_eq!(accounts(&usage), 999);
    for n in 0..1_000 {
        usage.count_key(&caller(&format!("new {n}")), new(), &quotas, MINUTE, later);
    }
    assert_eq!(accounts(&usage), 1_000);
}

#[test]
fn a_key_that_was_given_back_counts_as_new_once_and_as_no_record() {
    let quotas = Quotas { new_keys_per_minute: Some(2), records: Some(2), bytes: None };
    let (usage, alice, start, key) = (Usage::default(), caller("alice"), Instant::now(), new());
    for _ in 0..5 {
        assert_eq!(usage.is_over(&alice, key, &quotas, start), None);
        usage.count_key(&alice, key, &quotas, DAY, start);
        usage.uncount_record(&alice, DAY, start);
    }
    // One more new key, and then no other.
    assert_eq!(usage.is_over(&alice, new(), &quotas, start), None);
    usage.count_key(&alice, new(), &quotas, DAY, start);
    usage.uncount_record(&alice, DAY, start);
    assert_eq!(usage.is_over(&alice, new(), &quotas, start), Some(MINUTE));
    // After the minute, nothing is left of all these.
    assert_eq!(usage.is_over(&alice, new(), &quotas, start + MINUTE), None);
    assert_eq!(accounts(&usage), 0);
}
