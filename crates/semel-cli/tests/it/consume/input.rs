//! Standard input, and files that grow.

use std::io::Write;
use std::process::Stdio;

use rustix::process::Signal;

use super::feed::{Consuming, Feed, consume, until};
use crate::place::Place;

#[test]
fn the_same_input_again_is_known_again() {
    let place = Place::file();
    let feed = Feed::new();
    let ran = || {
        let mut command = consume(&place, "-", &feed.tracing(""), "");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        child.stdin.take().expect("is piped").write_all(b"one\ntwo\n\nthree").expect("is written");
        let output = child.wait_with_output().expect("ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("is text")
    };
    assert!(ran().contains("processed            3"));
    assert!(ran().contains("duplicates           3"));
    assert_eq!(feed.runs(), 3);
}

#[test]
fn an_input_that_stays_open_keeps_nobody_from_stopping() {
    let place = Place::file();
    let feed = Feed::new();
    let mut command = consume(&place, "-", &feed.tracing(""), "");
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let running = Consuming::start(command.stdin(reader));
    writer.write_all(b"one\n").expect("is written");
    until("a run", || (feed.runs() == 1).then_some(()));
    running.signal(Signal::TERM);
    running.end().fine();
    drop(writer);
}

#[test]
fn a_file_that_is_followed_is_read_as_it_grows_and_progress_is_told() {
    let place = Place::file();
    let feed = Feed::of_orders(3);
    let source = format!("{}?follow", feed.source());
    let running = Consuming::start(&mut consume(&place, &source, &feed.tracing(""), "--key pointer:/id"));
    until("the first", || (feed.runs() == 3).then_some(()));
    feed.append(3..8);
    until("the rest", || (feed.runs() == 8).then_some(()));
    // Not on a terminal: a line every 10 seconds.
    running.says("done 8  duplicates 0");
    assert!(!running.said().contains('\u{1b}'), "{}", running.said());
    running.signal(Signal::TERM);
    let account = running.end().fine();
    assert!(account.contains("processed            8"), "{account}");
}

#[test]
fn once_ends_when_nothing_more_comes() {
    let place = Place::file();
    let feed = Feed::of_orders(3);
    let source = format!("{}?follow", feed.source());
    let more = "--key pointer:/id --once=500ms";
    let running = Consuming::start(&mut consume(&place, &source, &feed.tracing("sleep 1;"), more));
    let account = running.end().fine();
    assert!(account.contains("processed            3"), "{account}");
}
