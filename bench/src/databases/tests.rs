//! Every database is asked the same, and must answer the same.

use std::path::Path;

use semel::clock::{Clock, SystemClock};

use super::{Call, Database, Fjall, GroupCommit, Kept, OWNER, Redb, Reply, Row, Sqlite, fill};
use crate::callers::runtime;
use crate::contestants::{Claimed, Contestant, StoreAlone, roomy};
use crate::folder::TempFolder;
use crate::inputs::{self, Response};

fn claim(number: u64, now_micros: u64) -> Call {
    Call::Claim { row: Row::running(number, now_micros).unwrap(), now_micros }
}

fn complete(number: u64, expected: u64) -> Call {
    Call::Complete { expected, row: Row::done(number, 2_000, &Response::new().encoded()).unwrap() }
}

/// Opens what is in a folder, and closes it when it is dropped.
fn keeps_the_rules<D: Database>(name: &str, open: impl Fn(&Path) -> D) {
    let scratch = TempFolder::for_test(name);
    let mut database = open(scratch.path());
    // Two claims of one key in one batch: a database must see what it is about to write.
    let replies = database.commit(&[claim(1, 1_000), claim(1, 1_000), claim(2, 1_000)]).unwrap();
    let running = Row::running(1, 1_000).unwrap().bytes;
    assert_eq!(replies, [Reply::Written, Reply::Found(running), Reply::Written], "{name}");
    assert_eq!(
        database.commit(&[complete(1, 7), complete(3, 1)]).unwrap(),
        [Reply::Lost, Reply::Lost],
        "{name}"
    );
    assert_eq!(database.commit(&[complete(1, 1)]).unwrap(), [Reply::Written], "{name}");
    drop(database);

    let mut database = open(scratch.path());
    let found = database.commit(&[claim(1, 3_000)]).unwrap();
    let [Reply::Found(bytes)] = found.as_slice() else { panic!("{name}: {found:?}") };
    assert_eq!(Kept::new(bytes).last(), Some(&Response::new().encoded()[..]), "{name}");
    assert_eq!(database.commit(&[complete(1, 1)]).unwrap(), [Reply::Lost], "{name}");

    let done_until = Row::done(1, 2_000, &[]).unwrap().until_micros;
    assert_eq!(database.sweep(done_until - 1, 10).unwrap(), 0, "{name}");
    assert_eq!(database.sweep(done_until, 10).unwrap(), 1, "{name}: the index holds one place a row");
    assert_eq!(database.commit(&[claim(1, 3_000)]).unwrap(), [Reply::Written], "{name}");
    // The running row of key 2 is past its time: a claim takes its place, and its place in the index.
    assert_eq!(database.commit(&[claim(2, u64::MAX / 4)]).unwrap(), [Reply::Written], "{name}");
    assert_eq!(database.sweep(u64::MAX / 4, 10).unwrap(), 1, "{name}");
}

#[test]
fn every_database_keeps_the_same_rules() {
    keeps_the_rules("fjall", |folder| Fjall::open(folder).unwrap());
    keeps_the_rules("redb", |folder| Redb::open(folder).unwrap());
    keeps_the_rules("sqlite", |folder| Sqlite::open(folder).unwrap());
}

fn sweeps_what_was_filled<D: Database>(name: &str, open: impl Fn(&Path) -> D) {
    let scratch = TempFolder::for_test(&format!("{name}-filled"));
    let mut database = open(scratch.path());
    let last_until_micros = fill(&mut database, 2_500).unwrap();
    let removed: Vec<_> = (0..3).map(|_| database.sweep(last_until_micros, 1_024).unwrap()).collect();
    assert_eq!(removed, [1_024, 1_024, 452], "{name}");
}

#[test]
fn what_was_filled_is_swept_a_batch_at_a_time() {
    sweeps_what_was_filled("fjall", |folder| Fjall::open(folder).unwrap());
    sweeps_what_was_filled("redb", |folder| Redb::open(folder).unwrap());
    sweeps_what_was_filled("sqlite", |folder| Sqlite::open(folder).unwrap());
}

#[test]
fn a_group_commit_grants_each_key_to_one_of_many_callers() {
    let scratch = TempFolder::for_test("grants");
    for calls_max in [1, usize::MAX] {
        let folder = scratch.path().join(calls_max.to_string());
        let grouped =
            std::sync::Arc::new(GroupCommit::new(Sqlite::open(&folder).unwrap(), calls_max).unwrap());
        let granted = runtime(2).unwrap().block_on(async {
            let mut callers = tokio::task::JoinSet::new();
            for _ in 0..8 {
                let grouped = std::sync::Arc::clone(&grouped);
                // A claim while another caller runs the key is refused, which is an error here.
                callers.spawn(async move { matches!(grouped.claim(7).await, Ok(Claimed::Run(_))) });
            }
            callers.join_all().await.into_iter().filter(|granted| *granted).count()
        });
        assert_eq!(granted, 1);
    }
}

#[test]
fn a_row_has_about_as_many_bytes_as_a_record_of_semel() {
    let semel = runtime(1).unwrap().block_on(async {
        let store = StoreAlone::new(roomy());
        let _run = store.claim(1).await.unwrap();
        store.cycle(2).await.unwrap();
        let page =
            semel::store::Store::scan(store.store(), semel::store::Scan { limit: 9, ..Default::default() });
        let mut bytes: Vec<_> = page
            .await
            .unwrap()
            .value
            .records
            .iter()
            .map(|record| semel::codec::encode(record).unwrap().len())
            .collect();
        bytes.sort_unstable();
        bytes
    });
    let now_micros = SystemClock::new().now().as_micros();
    let rows = [
        Row::running(1, now_micros).unwrap().bytes.len(),
        Row::done(2, now_micros, &Response::new().encoded()).unwrap().bytes.len(),
    ];
    for (semel, row) in semel.iter().zip(rows) {
        assert!(semel.abs_diff(row) * 10 <= *semel, "semel writes {semel} bytes, a row has {row}");
    }
}

#[test]
fn a_row_gives_back_what_was_put_into_it() {
    let outcome = Response::new().encoded();
    let row = Row::done(42, 1_000, &outcome).unwrap();
    let kept = Kept::new(&row.bytes);
    assert_eq!((kept.version().unwrap(), kept.until_micros().unwrap()), (2, row.until_micros));
    assert_eq!((kept.is_done(), kept.fingerprint()), (true, Some(&inputs::digest(42)[..])));
    assert_eq!(kept.last(), Some(&outcome[..]));
    let row = Row::running(42, 1_000).unwrap();
    assert_eq!((Kept::new(&row.bytes).is_done(), Kept::new(&row.bytes).last()), (false, Some(OWNER)));
}
