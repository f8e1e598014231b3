//! A window notices every event that was not told what it should be, and a bar is judged round by round.

use std::time::Duration;

use semel::Semel;
use semel::store::MemoryStore;
use semel_stream::{Commit, Pipeline, Position, Processed, Seen};

use super::bars::judge;
use super::place::Place;
use super::rounds::{Sample, Samples};
use super::window::{Course, Kind, Plan, STREAM, Window, ensure_told};
use crate::runtime::runtime;

fn plan(batch: u64, kind: Kind) -> Plan {
    Plan { batch, kind, span: Duration::from_millis(20) }
}

fn pipeline() -> Pipeline {
    Pipeline::new(&Semel::new(MemoryStore::new()), "p").unwrap()
}

#[test]
fn windows_of_both_kinds_leave_receipts_and_an_offset_behind() {
    runtime(1).unwrap().block_on(async {
        let mut course = Course::begin(pipeline(), 1_000).await.unwrap();
        for batch in [1, 100] {
            for kind in [Kind::New, Kind::Duplicates] {
                let window = course.window(plan(batch, kind)).await.unwrap();
                assert!(window.rate > 0.0 && window.batch_p50_us <= window.batch_p99_us, "{window:?}");
            }
        }
        assert!(course.receipts() > 1_000);
        course.ensure_kept(1_000).await.unwrap();
    });
}

#[test]
fn an_offset_that_is_elsewhere_is_noticed() {
    runtime(1).unwrap().block_on(async {
        let pipeline = pipeline();
        let mut course = Course::begin(pipeline.clone(), 1_000).await.unwrap();
        course.window(plan(10, Kind::New)).await.unwrap();
        pipeline.rewind(STREAM, Some(Position::new(3))).await.unwrap();
        assert!(course.ensure_kept(1_000).await.unwrap_err().to_string().contains("the offset is"));
        let reader = pipeline.take(STREAM).await.unwrap();
        let last = u128::from(course.receipts() - 1);
        let commit = reader.commit(Position::new(last), None).await.unwrap();
        assert!(matches!(commit, Commit::Committed(_)), "{commit:?}");
        course.ensure_kept(1_000).await.unwrap();
        course.window(plan(10, Kind::New)).await.unwrap_err();
        assert!(course.ensure_kept(1_000).await.is_err(), "whoever was fenced committed nothing");
    });
}

#[test]
fn receipts_that_were_forgotten_are_noticed() {
    runtime(1).unwrap().block_on(async {
        let semel = Semel::new(MemoryStore::new());
        // Over long before the window is.
        let forgetful = Pipeline::builder(&semel, "p").retention(Duration::from_micros(1)).build().unwrap();
        let mut course = Course::begin(forgetful, 0).await.unwrap();
        course.window(plan(10, Kind::New)).await.unwrap();
        assert!(course.ensure_kept(0).await.unwrap_err().to_string().contains("have no receipt"));
    });
}

#[test]
fn a_batch_that_was_told_anything_else_is_no_result() {
    let told = |events| Processed { events };
    let (ran, duplicate) = (|| Seen::Ran { attempt: 1 }, || Seen::Duplicate);
    assert!(ensure_told(plan(2, Kind::New), &told(vec![ran(), ran()])).is_ok());
    assert!(ensure_told(plan(2, Kind::Duplicates), &told(vec![duplicate(), duplicate()])).is_ok());
    for wrong in [vec![ran(), duplicate()], vec![ran()], vec![ran(), Seen::Busy]] {
        assert!(ensure_told(plan(2, Kind::New), &told(wrong)).is_err());
    }
    assert!(ensure_told(plan(2, Kind::Duplicates), &told(vec![ran(), duplicate()])).is_err());
}

#[test]
fn a_rate_is_compared_within_its_own_round() {
    let sample = |round, batch, kind, rate| {
        let window = Window { rate, batch_p50_us: 1.0, batch_p99_us: 1.0, cpu_us: 1.0 };
        Sample { round, place: Place::Postgres, batch, kind, window }
    };
    // 10, 20 and 40 times as many; the middle one counts, and not the ratio of the middle rates.
    let rates = [(0, 100.0, 1_000.0), (1, 1.0, 20.0), (2, 10.0, 400.0)];
    let samples = rates.map(|(round, single, many)| {
        [
            sample(round, 1, Kind::New, single),
            sample(round, 1_000, Kind::New, many),
            sample(round, 1_000, Kind::Duplicates, many * 4.9),
        ]
    });
    let bars = judge(&Samples(samples.concat()));
    let [single, file, postgres] = bars.as_slice() else { panic!("{bars:?}") };
    assert!(single.reached && single.wanted == "at least 20.0× batches of 1", "{single:?}");
    assert!(!postgres.reached && postgres.found == "4.90×", "{postgres:?}");
    assert!(!file.reached, "what was not measured is not reached: {file:?}");
}
