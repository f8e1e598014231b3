//! Files through the loop: one effect each.

use std::fmt::Write;
use std::path::Path;

use semel::ErrorKind;
use semel_stream::source::LinesSource;
use test_streams::ask::eventually;
use test_streams::effects::{Effects, by_number, consumer, pipeline, run, unprotected};

use super::file::{append, file};

fn lines(numbers: std::ops::RangeInclusive<u32>) -> String {
    numbers.fold(String::new(), |mut text, number| {
        writeln!(text, "{{\"n\":{number}}}").unwrap();
        text
    })
}

fn open(path: &Path) -> LinesSource {
    LinesSource::open(path).unwrap()
}

#[tokio::test]
async fn lines_that_stand_there_twice_have_one_effect_each() {
    let (_folder, path) = file(&(lines(1..=50) + &lines(1..=50)));
    let (pipeline, effects) = (pipeline(), Effects::default());
    let report = run(consumer(&pipeline, open(&path)).key(by_number()), &effects).end().await.unwrap();
    assert_eq!((report.delivered, report.ran, report.duplicates), (100, 50, 50));
    effects.assert_once(50);

    let careless = Effects::default();
    run(unprotected(&test_streams::effects::pipeline(), open(&path)), &careless).end().await.unwrap();
    assert_eq!(careless.most(), 2, "the test must see what it looks for");
}

#[tokio::test]
async fn a_second_run_reads_on_behind_the_committed_offset() {
    let (_folder, path) = file(&lines(1..=20));
    let (pipeline, effects) = (pipeline(), Effects::default());
    run(consumer(&pipeline, open(&path)), &effects).end().await.unwrap();
    let stream = path.to_str().unwrap();
    let offset = pipeline.offset(stream).await.unwrap().unwrap();
    assert_eq!(offset.position.unwrap().get(), u128::from(path.metadata().unwrap().len()));
    append(&path, &lines(21..=25));
    let report = run(consumer(&pipeline, open(&path)), &effects).end().await.unwrap();
    assert_eq!((report.delivered, report.ran), (5, 5));
    effects.assert_once(25);
}

#[tokio::test]
async fn a_reader_that_was_taken_over_from_is_told_so_and_repeats_nothing() {
    let (_folder, path) = file(&lines(1..=10));
    let (pipeline, effects) = (pipeline(), Effects::default());
    let first = run(consumer(&pipeline, open(&path).follow(true)), &effects);
    first.until(|report| report.ran == 10 && report.offsets.values().any(|at| at.get() > 0)).await;
    let second = run(consumer(&pipeline, open(&path).follow(true)), &effects);
    // Nothing new is written before the second one reads, or the first might do all of it.
    let epoch = async || pipeline.offset(path.to_str().unwrap()).await.unwrap().unwrap().epoch;
    eventually(async || epoch().await == 2).await;
    append(&path, &lines(11..=30));
    let error = first.end().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error:?}");
    second.until(|report| report.ran + report.duplicates >= 20).await;
    second.stop().await;
    effects.assert_once(30);
}

#[tokio::test]
async fn a_consumer_that_crashed_anywhere_repeats_nothing_when_it_is_started_again() {
    let (_folder, path) = file(&lines(1..=500));
    let (pipeline, effects) = (pipeline(), Effects::default());
    for part in 1..=4 {
        let one = run(consumer(&pipeline, open(&path).follow(true)), &effects);
        eventually(async || effects.events() >= part * 100).await;
        one.crash().await;
    }
    let report = run(consumer(&pipeline, open(&path)), &effects).end().await.unwrap();
    assert!(report.delivered < 500, "it went on from somewhere");
    effects.assert_once(500);
}

#[tokio::test]
async fn the_same_input_again_has_no_effect_and_another_has() {
    let (pipeline, effects) = (pipeline(), Effects::default());
    let input = |text: String| LinesSource::input("stdin", std::io::Cursor::new(text));
    for expected in [20, 0] {
        let report = run(consumer(&pipeline, input(lines(1..=20))), &effects).end().await.unwrap();
        assert_eq!((report.delivered, report.ran), (20, expected));
    }
    effects.assert_once(20);
    let report = run(consumer(&pipeline, input(lines(21..=40))), &effects).end().await.unwrap();
    assert_eq!(report.ran, 20);
    effects.assert_once(40);
}

#[tokio::test]
async fn a_file_that_was_cut_off_ends_the_run_with_what_to_do() {
    let (_folder, path) = file(&lines(1..=20));
    let (pipeline, effects) = (pipeline(), Effects::default());
    run(consumer(&pipeline, open(&path)), &effects).end().await.unwrap();
    std::fs::write(&path, lines(1..=5)).unwrap();
    let error = run(consumer(&pipeline, open(&path)), &effects).end().await.unwrap_err();
    assert!(error.to_string().contains("is not the file that it was"), "{error}");
    pipeline.rewind(path.to_str().unwrap(), None).await.unwrap();
    let report = run(consumer(&pipeline, open(&path)), &effects).end().await.unwrap();
    assert_eq!((report.ran, report.duplicates), (0, 5));
}
