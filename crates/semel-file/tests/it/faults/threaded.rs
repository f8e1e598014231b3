//! Many callers at once, and a disk that fails under them: whoever shared the failed write is told that nobody knows.

use std::sync::{Arc, Mutex};

use semel::record::Record;
use semel::store::{Store, Swap, SwapReply};
use semel::{ErrorKind, Key};
use semel_file::FileStore;
use semel_testkit::{ManualClock, sample};

use crate::crash::open;
use crate::dice::Dice;
use crate::disk::{Calls, FailingDisk, Failure, SimulatedDisk, Survival, Syncs};
use crate::sync::loaded;

/// How many calls of the disk are made to fail, one at a time.
const CALLS: u64 = 16;
const CALLERS: usize = 8;
const CLAIMS: usize = 20;
const SEGMENT_BYTES: u64 = 64 << 10;

/// What callers were told: records, and the kinds of errors.
#[derive(Default)]
struct Told {
    acknowledged: Vec<Arc<Record>>,
    refused: Vec<ErrorKind>,
    late: usize,
}

async fn call(caller: usize, store: Arc<FileStore>, disk: FailingDisk, told: Arc<Mutex<Told>>) {
    for number in 0..CLAIMS {
        let key = Key::scoped(["threaded"], "charge", &format!("{caller}-{number}")).unwrap();
        let write = sample::running(&sample::ask(&key)).unwrap();
        let has_failed = disk.failed().is_some();
        let swap = Swap { expected: None, next: write.next, keep: write.keep };
        let answer = store.swap([swap].into()).await;
        let mut told = told.lock().unwrap();
        match answer.map(|answer| answer.value.into_iter().next()) {
            Ok(Some(SwapReply::Swapped(record))) => {
                told.late += usize::from(has_failed);
                told.acknowledged.push(record);
            }
            // Where the next segment found no room, or could not be prepared for another reason.
            Ok(Some(SwapReply::Full | SwapReply::Damaged(_) | SwapReply::Refused(_))) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => told.refused.push(error.kind()),
        }
    }
}

/// Lets the nth call of a crowd of callers fail.
fn crowd(nth: u64, failure: Failure) -> Result<(), String> {
    let below = SimulatedDisk::new();
    let disk = FailingDisk::new(Arc::new(below.clone()));
    let clock = ManualClock::at(1_000_000_000_000);
    let store = FileStore::on(Arc::new(disk.clone()))
        .clock(clock.clone())
        .segment_bytes(SEGMENT_BYTES)
        .open()
        .unwrap();
    disk.fail_at(Calls::Changes, nth, failure);
    let (store, told) = (Arc::new(store), Arc::new(Mutex::new(Told::default())));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let calls = (0..CALLERS)
            .map(|caller| tokio::spawn(call(caller, Arc::clone(&store), disk.clone(), Arc::clone(&told))));
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    });
    let told = told.lock().unwrap();
    if disk.failed().is_some_and(|failed| failed.is_of_the_log()) {
        if told.late > 0 {
            return Err(format!("{} were acknowledged after a call had failed", told.late));
        }
        if !told.refused.contains(&ErrorKind::Unknown) {
            return Err("nobody was told that nobody knows".to_owned());
        }
    }
    drop(store);
    for survival in [Survival::All, Survival::Nothing] {
        let image = below.image().cut_to(survival, &mut Dice::new(nth));
        let store = open(&SimulatedDisk::holding(image, Syncs::Honest), clock.clone()).unwrap();
        let ids = told.acknowledged.iter().map(|record| record.key.id()).collect();
        let found = loaded(&store, ids).unwrap().value;
        let acknowledged = told.acknowledged.iter().map(|record| Some(Arc::clone(record)));
        if !found.into_iter().eq(acknowledged) {
            return Err(format!("an acknowledged record is lost ({survival:?})"));
        }
    }
    Ok(())
}

#[test]
fn of_many_callers_none_is_acknowledged_after_a_failed_call_and_none_is_lost() {
    for nth in 1..=CALLS {
        for failure in [Failure::Refused, Failure::Short, Failure::Late] {
            let seen = crowd(nth, failure);
            assert_eq!(seen, Ok(()), "{failure:?} at call {nth}");
        }
    }
}

#[test]
fn a_disk_that_hides_its_failures_from_many_callers_is_found_out() {
    assert!((1..=CALLS).any(|nth| crowd(nth, Failure::Hidden).is_err()));
}
