//! No room left: new claims are refused, what runs can still end, and room that comes back is used.

use std::sync::Arc;

use semel::machine::settle::{complete, release, renew};
use semel::record::{PermitId, Record, State};
use semel::store::{Store, Swap, SwapReply};
use semel::{ErrorKind, Key, Outcome};
use semel_file::FileStore;
use semel_testkit::{ManualClock, sample};

use crate::crash::open;
use crate::disk::{FailingDisk, SimulatedDisk};
use crate::sync::{loaded, ready};

/// More claims than any segment of these tests holds.
const CLAIMS_MOST: usize = 5_000;

struct Bench {
    disk: FailingDisk,
    clock: ManualClock,
    store: FileStore,
    claimed: usize,
}

impl Bench {
    fn new() -> Self {
        let disk = FailingDisk::new(Arc::new(SimulatedDisk::new()));
        let clock = ManualClock::at(1_000_000_000_000);
        let store = open(&disk, clock.clone()).unwrap();
        Self { disk, clock, store, claimed: 0 }
    }

    fn swap(&self, swap: Swap) -> SwapReply {
        ready(self.store.swap([swap].into())).unwrap().value.remove(0)
    }

    /// A claim of a key that nobody claimed before.
    fn claim(&mut self) -> SwapReply {
        self.claimed += 1;
        let key = Key::scoped(["full"], "charge", &format!("order-{}", self.claimed)).unwrap();
        let write = sample::running(&sample::ask(&key)).unwrap();
        self.swap(Swap { expected: None, next: write.next, keep: write.keep })
    }

    /// Claims until the store says that it is full.
    fn claim_until_full(&mut self) -> Vec<Arc<Record>> {
        let mut running = Vec::new();
        for _ in 0..CLAIMS_MOST {
            match self.claim() {
                SwapReply::Swapped(record) => running.push(record),
                SwapReply::Full => return running,
                other => panic!("{other:?}"),
            }
        }
        panic!("{CLAIMS_MOST} claims were taken without any room");
    }

    fn renew(&self, record: &Record) -> semel::Result<Arc<Record>> {
        let State::Running(running) = &record.state else { panic!("{record:?}") };
        let write = renew(Some(record), running.grant.permit_id, sample::LONG, record.changed_at).write;
        let write = sample::written(write).unwrap();
        let swap = Swap { expected: Some(record.version), next: write.next, keep: write.keep };
        match ready(self.store.swap([swap].into()))?.value.remove(0) {
            SwapReply::Swapped(record) => Ok(record),
            SwapReply::Refused(why) => Err(why),
            other => panic!("{other:?}"),
        }
    }

    fn settle(&self, record: &Record, ending: Ending) -> SwapReply {
        let State::Running(running) = &record.state else { panic!("{record:?}") };
        let (permit_id, now): (PermitId, _) = (running.grant.permit_id, record.changed_at);
        let write = match ending {
            Ending::Complete => complete(Some(record), permit_id, &Outcome::success("done"), now).write,
            Ending::Release => release(Some(record), permit_id, "gave up", now).write,
        };
        let write = sample::written(write).unwrap();
        self.swap(Swap { expected: Some(record.version), next: write.next, keep: write.keep })
    }
}

#[derive(Clone, Copy)]
enum Ending {
    Complete,
    Release,
}

#[test]
fn a_full_disk_refuses_new_claims_and_lets_runs_end() {
    let mut bench = Bench::new();
    bench.disk.fill();
    let running = bench.claim_until_full();
    for (number, record) in running.iter().enumerate() {
        let ending = if number % 2 == 0 { Ending::Complete } else { Ending::Release };
        let reply = bench.settle(record, ending);
        assert!(matches!(reply, SwapReply::Swapped(_)), "{number} of {}: {reply:?}", running.len());
    }
    assert!(matches!(bench.claim(), SwapReply::Full));
}

#[test]
fn a_disk_with_room_again_takes_claims_again() {
    let mut bench = Bench::new();
    bench.disk.fill();
    let running = bench.claim_until_full();
    bench.disk.make_room();
    let taken = (0..3).any(|_| matches!(bench.claim(), SwapReply::Swapped(_)));
    assert!(taken, "no claim is taken although there is room");
    for _ in 0..500 {
        assert!(matches!(bench.claim(), SwapReply::Swapped(_)));
    }
    let ids = running.iter().map(|record| record.key.id()).collect();
    let found = loaded(&bench.store, ids).unwrap().value;
    assert!(found.iter().flatten().eq(running.iter()));
}

#[test]
fn a_run_can_end_again_once_there_is_room_after_even_the_reserve_was_used_up() {
    let mut bench = Bench::new();
    bench.disk.fill();
    let running = bench.claim_until_full();
    let mut last = running.first().unwrap().clone();
    let refused = (0..CLAIMS_MOST).find_map(|_| match bench.renew(&last) {
        Ok(record) => {
            last = record;
            None
        }
        Err(error) => Some(error),
    });
    let refused = refused.expect("there is no room for so many renewals");
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused:?}");
    let ids = vec![last.key.id()];
    assert_eq!(loaded(&bench.store, ids).unwrap().value, [Some(last.clone())]);
    bench.disk.make_room();
    bench.renew(&last).expect("there is room again");
}

#[test]
fn what_was_taken_on_a_full_disk_is_there_after_it_is_opened_again() {
    let mut bench = Bench::new();
    bench.disk.fill();
    let running = bench.claim_until_full();
    let done: Vec<Arc<Record>> = running
        .iter()
        .take(10)
        .map(|record| match bench.settle(record, Ending::Complete) {
            SwapReply::Swapped(record) => record,
            other => panic!("{other:?}"),
        })
        .collect();
    let Bench { disk, clock, store, .. } = bench;
    drop(store);
    let store = open(&disk, clock).expect("a full disk can be opened");
    let ids = done.iter().map(|record| record.key.id()).collect();
    let found = loaded(&store, ids).unwrap().value;
    assert!(found.iter().flatten().eq(done.iter()));
}
