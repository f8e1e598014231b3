//! Files of lines, and inputs without a name.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use semel::ErrorKind;
use semel_stream::Position;
use semel_stream::source::{Fetched, LinesSource, Reads, Source};
use tempfile::TempDir;
use test_streams::ask::{assigned, deliveries, ids, news, payloads, silence, tags};

pub(crate) fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.jsonl");
    fs::write(&path, text).unwrap();
    (folder, path)
}

pub(crate) fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

async fn started(path: &Path, after: Option<u128>, follow: bool) -> LinesSource {
    let mut source = LinesSource::open(path).unwrap().follow(follow);
    let stream = assigned(&mut source).await.remove(0);
    assert_eq!(&*stream, path.to_str().unwrap());
    source.start(&stream, after.map(Position::new)).await.unwrap();
    source
}

#[tokio::test]
async fn a_file_is_read_to_its_end_with_a_last_line_that_has_none() {
    let (_folder, path) = file("{\"n\":1}\n\n{\"n\":2}\r\n{\"n\":3}");
    let mut source = started(&path, None, false).await;
    assert_eq!(source.reads(), Reads::Alone);
    let all = deliveries(&mut source, 3).await;
    assert_eq!(payloads(&all), ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"]);
    let positions: Vec<_> = all.iter().map(|delivery| delivery.event.position.unwrap().get()).collect();
    assert_eq!(positions, [8, 18, 25]);
    assert_eq!(ids(&all)[1], format!("{}/18", path.display()));
    for _ in 0..2 {
        assert!(matches!(news(&mut source, 9).await.unwrap(), Fetched::End));
    }
}

#[tokio::test]
async fn every_position_is_a_place_to_go_on_from() {
    let (_folder, path) = file("one\ntwo\n\nthree");
    let all = deliveries(&mut started(&path, None, false).await, 3).await;
    for (index, delivery) in all.iter().enumerate() {
        let mut source = started(&path, delivery.event.position.map(Position::get), false).await;
        let left = &all[index + 1..];
        assert_eq!(ids(&deliveries(&mut source, left.len()).await), ids(left));
        assert!(matches!(news(&mut source, 9).await.unwrap(), Fetched::End));
    }
    append(&path, "\nfour\n");
    let mut source = started(&path, all[2].event.position.map(Position::get), false).await;
    assert_eq!(payloads(&deliveries(&mut source, 1).await), ["four"]);
}

#[tokio::test]
async fn nothing_of_a_file_is_delivered_before_somebody_said_where_to_start() {
    let (_folder, path) = file("one\n");
    let mut source = LinesSource::open(&path).unwrap();
    let stream = assigned(&mut source).await.remove(0);
    silence(&mut source).await;
    source.start(&stream, None).await.unwrap();
    assert_eq!(payloads(&deliveries(&mut source, 1).await), ["one"]);
}

#[tokio::test]
async fn a_followed_file_hands_out_a_line_once_its_end_is_there() {
    let (_folder, path) = file("one\ntw");
    let mut source = started(&path, None, true).await;
    assert_eq!(payloads(&deliveries(&mut source, 1).await), ["one"]);
    silence(&mut source).await;
    append(&path, "o\n");
    assert_eq!(payloads(&deliveries(&mut source, 1).await), ["two"]);
}

#[tokio::test]
async fn a_followed_file_that_is_cut_off_or_replaced_is_noticed() {
    let (_folder, path) = file("one\ntwo\n");
    for replace in [false, true] {
        fs::write(&path, "one\ntwo\n").unwrap();
        let mut source = started(&path, None, true).await;
        deliveries(&mut source, 2).await;
        silence(&mut source).await;
        if replace {
            fs::rename(&path, path.with_extension("old")).unwrap();
            fs::write(&path, "one\ntwo\nanother\n").unwrap();
        } else {
            fs::write(&path, "new\n").unwrap();
        }
        let error = news(&mut source, 9).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
        assert!(error.to_string().contains("is not the file that it was"), "{error}");
    }
}

#[tokio::test]
async fn a_file_is_not_read_on_from_within_a_line_or_from_beyond_its_end() {
    let (_folder, path) = file("one\ntwo\n");
    for after in [1, 3, 9, u128::MAX] {
        let mut source = LinesSource::open(&path).unwrap();
        let stream = assigned(&mut source).await.remove(0);
        let started = source.start(&stream, Some(Position::new(after))).await;
        if after == 3 {
            // A last line may have had no end when it was read.
            started.unwrap();
            assert_eq!(payloads(&deliveries(&mut source, 1).await), ["two"]);
        } else {
            assert_eq!(started.unwrap_err().kind(), ErrorKind::Invalid, "after {after}");
        }
    }
}

#[tokio::test]
async fn what_is_given_back_comes_again_before_the_end_and_nothing_else_does() {
    let (_folder, path) = file("one\ntwo\n");
    let mut source = started(&path, None, false).await;
    let all = deliveries(&mut source, 2).await;
    source.give_back(&tags(&all[..1]), Duration::from_millis(50)).await.unwrap();
    source.acknowledge(&tags(&all[1..])).await.unwrap();
    let again = deliveries(&mut source, 1).await;
    assert_eq!(again[0].event, all[0].event);
    assert!(matches!(news(&mut source, 9).await.unwrap(), Fetched::End));
}

#[tokio::test]
async fn a_fetch_that_is_dropped_loses_nothing() {
    let (mut writer, reader) = tokio::io::duplex(64);
    let mut source = LinesSource::input("pipe", reader);
    let writing = tokio::spawn(async move {
        for number in 0..200 {
            let line = format!("{{\"n\":{number}}}\n");
            for half in line.as_bytes().chunks(4) {
                tokio::io::AsyncWriteExt::write_all(&mut writer, half).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    let mut all = Vec::new();
    for _ in 0..1_000_000 {
        tokio::select! {
            biased;
            fetched = source.fetch(3) => match fetched.unwrap() {
                Fetched::Deliveries(some) => all.extend(payloads(&some)),
                Fetched::End => break,
                other => panic!("{other:?}"),
            },
            () = tokio::task::yield_now() => {}
        }
    }
    writing.await.unwrap();
    let expected: Vec<_> = (0..200).map(|number| format!("{{\"n\":{number}}}")).collect();
    assert_eq!(all, expected);
}

#[tokio::test]
async fn an_input_gives_the_same_ids_for_the_same_lines_and_others_for_others() {
    async fn read(text: &'static str) -> Vec<String> {
        let mut source = LinesSource::input("stdin", text.as_bytes());
        assert_eq!(source.reads(), Reads::Shared);
        let all = deliveries(&mut source, 3).await;
        assert!(all.iter().all(|delivery| delivery.event.position.is_none()));
        ids(&all)
    }
    let first = read("one\ntwo\ntwo\n").await;
    assert_eq!(first, read("one\ntwo\ntwo\n").await);
    assert_ne!(first[1], first[2]);
    let other = read("eno\ntwo\ntwo\n").await;
    assert!(first.iter().all(|id| !other.contains(id)), "the same line behind another one is another event");
}

#[tokio::test]
async fn a_line_beyond_the_bound_is_an_error_after_all_before_it_was_handed_out() {
    let (_folder, path) = file("one\ntoo long\nthree\n");
    let mut source = LinesSource::open(&path).unwrap().line_bytes_max(5);
    let stream = assigned(&mut source).await.remove(0);
    source.start(&stream, None).await.unwrap();
    assert_eq!(payloads(&deliveries(&mut source, 1).await), ["one"]);
    for _ in 0..2 {
        let error = news(&mut source, 9).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("begins at byte 4 is longer than 5 bytes"), "{error}");
    }
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_path_buf(), folder.path().join("missing")] {
        assert_eq!(LinesSource::open(&path).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
