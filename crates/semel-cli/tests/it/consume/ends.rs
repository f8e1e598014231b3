//! Consumers that are told to stop, that die, and that come back from the dead.

use std::time::Duration;

use rustix::process::Signal;

use super::feed::{Consuming, Feed, consume, consumed, length, stopped, until};
use crate::binary::on;
use crate::place::Place;

#[test]
fn what_a_killed_consumer_left_open_runs_again_and_says_so_on_a_folder() {
    killed_in_the_middle(&Place::file());
}

#[test]
fn what_a_killed_consumer_left_open_runs_again_and_says_so_on_postgres() {
    killed_in_the_middle(&Place::postgres());
}

fn killed_in_the_middle(place: &Place) {
    let feed = Feed::of_orders(150);
    feed.append((0..150).step_by(3));
    let exec = feed.tracing("sleep 0.05;");
    let more = "--key pointer:/id --parallel 4 --lease 2s --checkpoint 50ms";
    let first = Consuming::start(&mut consume(place, &feed.source(), &exec, more));
    until("some traces", || (feed.runs() >= 30).then_some(()));
    first.kill();
    let before = feed.runs();
    assert!(before < 150, "it was killed in the middle");
    let left = on(place, "receipts orders --json --limit 1000").json_lines();
    assert!(left.iter().any(|event| event["state"] == "running"), "something was in work");
    let account = consumed(place, &feed.source(), &exec, more).fine();
    let traces = feed.traces();
    assert_eq!(traces.len(), 150, "{account}");
    let again: Vec<_> = traces.values().filter(|attempts| attempts.len() > 1).collect();
    // A command of the one that was killed ran to its end without anybody who could note it: its second run knew.
    assert!(again.iter().all(|attempts| **attempts == [1, 2]) && again.len() <= 4, "{again:?}");
    let rest: Vec<_> = traces.values().filter(|attempts| attempts.len() == 1).collect();
    assert!(rest.iter().all(|attempts| attempts[0] <= 2), "{rest:?}");
    let offset = on(place, "offsets orders --json").json();
    assert_eq!((&offset["position"], &offset["epoch"]), (&length(&feed.events()).into(), &2.into()));
    let receipts = on(place, "receipts orders --json --limit 1000").json_lines();
    assert!(receipts.len() == 150 && receipts.iter().all(|event| event["state"] == "processed"));
}

#[test]
fn a_signal_lets_what_runs_finish_and_begins_nothing_new() {
    let place = Place::file();
    let feed = Feed::of_orders(50);
    let exec = feed.tracing("touch started; sleep 1;");
    let mut command = consume(&place, &feed.source(), &exec, "--key pointer:/id --parallel 3");
    let started = feed.path("started");
    let running = Consuming::start(command.current_dir(started.parent().expect("has a folder")));
    until("a run", || started.exists().then_some(()));
    running.signal(Signal::TERM);
    let ran = running.end();
    assert!(ran.err.contains("may finish, nothing new is begun"), "{}", ran.err);
    let account = ran.fine();
    let finished = feed.runs();
    assert!((1..=6).contains(&finished), "{finished}: {account}");
    assert!(account.contains(&format!("processed    {finished:>9}")), "{account}");
    let receipts = on(&place, "receipts orders --json").json_lines();
    assert_eq!(receipts.len(), finished, "{receipts:?}");
    consumed(&place, &feed.source(), &feed.tracing(""), "--key pointer:/id").fine();
    assert!(feed.traces().len() == 50 && feed.runs() == 50, "{:?}", feed.traces());
}

#[test]
fn a_second_signal_ends_everything_at_once_and_commands_with_it() {
    let place = Place::file();
    let feed = Feed::of_orders(1);
    let exec = feed.tracing("touch started; sleep 3;");
    let started = feed.path("started");
    let mut command = consume(&place, &feed.source(), &exec, "--key pointer:/id");
    let running = Consuming::start(command.current_dir(started.parent().expect("has a folder")));
    until("a run", || started.exists().then_some(()));
    running.signal(Signal::INT);
    running.says("may finish");
    running.signal(Signal::INT);
    let error = stopped(&running.end());
    assert!(error.contains("stopped at once"), "{error}");
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(feed.runs(), 0, "its command went on");
}

#[test]
fn a_zombie_that_wakes_up_is_refused_and_its_runs_are_known_by_their_attempts() {
    let place = Place::postgres();
    let feed = Feed::of_orders(100);
    let exec = feed.tracing("sleep 0.05;");
    let more = "--key pointer:/id --parallel 4 --lease 1s --checkpoint 50ms";
    let first = Consuming::start(&mut consume(&place, &feed.source(), &exec, more));
    until("some traces", || (feed.runs() >= 20).then_some(()));
    first.signal(Signal::STOP);
    let account = consumed(&place, &feed.source(), &exec, more).fine();
    let offset = on(&place, "offsets orders --json").json();
    assert_eq!((&offset["position"], &offset["epoch"]), (&length(&feed.events()).into(), &2.into()));
    first.signal(Signal::CONT);
    let error = stopped(&first.end());
    assert!(error.contains("somebody else") || error.contains("another"), "{error}");
    assert_eq!(on(&place, "offsets orders --json").json(), offset, "the zombie committed nothing");
    let traces = feed.traces();
    assert_eq!(traces.len(), 100, "{account}");
    for (key, attempts) in &traces {
        let mut sorted = attempts.clone();
        sorted.sort_unstable();
        assert!(sorted == [1] || sorted == [2] || sorted == [1, 2], "{key}: {attempts:?}");
    }
    let again = traces.values().filter(|attempts| attempts.len() > 1).count();
    assert!(again <= 4, "{again} of 4 that it had in work");
}

#[test]
fn a_command_whose_lease_was_taken_over_is_killed() {
    let place = Place::postgres();
    let feed = Feed::of_orders(1);
    let exec = feed.tracing("touch started; sleep 8;");
    let started = feed.path("started");
    let more = "--key pointer:/id --lease 1s";
    let mut command = consume(&place, &feed.source(), &exec, more);
    let first = Consuming::start(command.current_dir(started.parent().expect("has a folder")));
    until("a run", || started.exists().then_some(()));
    first.signal(Signal::STOP);
    consumed(&place, &feed.source(), &feed.tracing(""), more).fine();
    assert_eq!(feed.traces()["\"order-0\""], [2]);
    first.signal(Signal::CONT);
    first.says("lost its lease in attempt 1");
    drop(first);
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(feed.traces()["\"order-0\""], [2], "the command went on without its lease");
}
