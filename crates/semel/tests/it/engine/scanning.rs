//! What a person at three in the morning asks: which keys are stuck?

use std::time::Duration;

use semel::record::StateKind;
use semel::store::{Filter, Scan};
use semel::{Claim, Key, Lapse};

use crate::world::{LEASE, RETENTION, World, granted, outcome};

#[tokio::test]
async fn the_one_held_key_of_a_tenant_is_found_page_by_page() {
    let world = World::new();
    let of = |tenant: &str, name: u32| Key::scoped([tenant], "charge", &name.to_string()).unwrap();
    for tenant in ["acme", "other"] {
        for name in 0..50 {
            let claim = Claim::new(&of(tenant, name)).lapse(Lapse::Hold);
            let permit = granted(world.semel.claim(claim).await.unwrap());
            if name != 7 {
                permit.complete(outcome("paid")).await.unwrap();
            }
        }
    }
    world.clock.advance(LEASE);
    assert_eq!(world.semel.claim(Claim::new(&of("acme", 7))).await.unwrap().as_str(), "held");

    let filter = Filter { scope: vec!["acme".into()], states: vec![StateKind::Held], ..Filter::default() };
    let page = world.semel.scan(Scan { filter, after: None, limit: 10 }).await.unwrap();
    assert_eq!(page.records.iter().map(|record| record.key.clone()).collect::<Vec<_>>(), [of("acme", 7)]);
    assert_eq!(page.next, None);

    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = world.semel.scan(Scan { filter: Filter::default(), after, limit: 9 }).await.unwrap();
        seen.extend(page.records.iter().map(|record| record.key.id()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 100);
    assert!(seen.is_sorted());
}

#[tokio::test]
async fn a_record_that_was_first_seen_at_the_moment_is_not_from_before_it() {
    let world = World::new();
    world.run(&crate::world::key("1")).await;
    let seen_at = world.semel.get(&crate::world::key("1")).await.unwrap().unwrap().first_seen_at;
    for (moment, shown) in [(seen_at, 0), (seen_at.plus(Duration::from_micros(1)), 1)] {
        let filter = Filter { first_seen_before: Some(moment), ..Filter::default() };
        let page = world.semel.scan(Scan { filter, after: None, limit: 10 }).await.unwrap();
        assert_eq!(page.records.len(), shown);
    }
}

#[tokio::test]
async fn what_is_past_its_time_is_not_shown() {
    let world = World::new();
    world.run(&crate::world::key("1")).await.complete(outcome("paid")).await.unwrap();
    world.clock.advance(RETENTION);
    let all = Scan { filter: Filter::default(), after: None, limit: 10 };
    assert!(world.semel.scan(all).await.unwrap().records.is_empty());
}

#[tokio::test]
async fn a_page_that_finds_nothing_ends_early_and_a_walk_still_sees_everything() {
    let world = World::new();
    for name in 0..10_000_u32 {
        let key = Key::new("charge", &name.to_string()).unwrap();
        world.semel.record_once(Claim::new(&key), outcome("paid")).await.map(drop).unwrap();
    }
    let wanted = Filter { name: Some("4711".into()), ..Filter::default() };
    let (mut pages, mut found, mut after) = (0, 0, None);
    loop {
        let page = world.semel.scan(Scan { filter: wanted.clone(), after, limit: 10 }).await.unwrap();
        (pages, found, after) = (pages + 1, found + page.records.len(), page.next);
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, 1);
    assert!((2..10).contains(&pages), "{pages} pages: each looks at a bounded number of records");
}

#[tokio::test]
async fn a_page_has_as_many_records_as_were_asked_for_and_the_next_goes_on_behind_them() {
    let world = World::new();
    for name in 0..10 {
        world.run(&crate::world::key(&name.to_string())).await;
    }
    let (mut after, mut sizes, mut seen) = (None, Vec::new(), std::collections::HashSet::new());
    loop {
        let scan = semel::store::Scan { after, limit: 4, ..semel::store::Scan::default() };
        let page = world.semel.scan(scan).await.unwrap();
        sizes.push(page.records.len());
        assert!(page.records.iter().all(|record| seen.insert(record.key.id())), "one was shown twice");
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((sizes, seen.len()), (vec![4, 4, 2], 10));
}

#[tokio::test]
async fn a_filter_takes_whole_words_and_not_what_begins_alike() {
    let world = World::new();
    let wanted = Key::scoped(["acme"], "charge", "1").unwrap();
    let alike = [("acme-2", "charge", "1"), ("acme", "charge-back", "1"), ("acme", "charge", "10")]
        .map(|(scope, operation, name)| Key::scoped([scope], operation, name).unwrap());
    for key in alike.iter().chain([&wanted]) {
        world.run(key).await;
    }
    let filters = [
        (Filter { scope: vec!["acme".into()], ..Filter::default() }, &alike[0]),
        (Filter { operation: Some("charge".into()), ..Filter::default() }, &alike[1]),
        (Filter { name: Some("1".into()), ..Filter::default() }, &alike[2]),
    ];
    for (filter, refused) in filters {
        let page = world.semel.scan(Scan { filter, after: None, limit: 10 }).await.unwrap();
        let shown: Vec<_> = page.records.iter().map(|record| &record.key).collect();
        assert_eq!((shown.len(), shown.contains(&&wanted)), (3, true), "{shown:?}");
        assert!(!shown.contains(&refused), "{refused:?} only begins alike");
    }
}
