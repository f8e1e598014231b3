//! Dead letters that are shown, and sent back through the store to whoever consumes.

use serde_json::Value;

use super::feed::{Consuming, Feed, consume, consumed, until};
use crate::binary::{Ran, on, ran, semel};
use crate::place::{Place, serve};

// Not through a server: a consumer needs the store itself.
crate::on_every_store!(@ file [a_dead_letter_is_shown_requeued_and_processed_by_the_next_consumer]);
crate::on_every_store!(@ postgres [a_dead_letter_is_shown_requeued_and_processed_by_the_next_consumer]);
crate::on_every_store!(@ redis [a_dead_letter_is_shown_requeued_and_processed_by_the_next_consumer]);
crate::on_every_store!(@ redis_cluster [a_dead_letter_is_shown_requeued_and_processed_by_the_next_consumer]);

const MORE: &str = "--key pointer:/id --lease 1s";

/// A command that refuses some orders until the file `mended` is there.
fn mendable(feed: &Feed, refused: &str) -> String {
    let mended = feed.path("mended");
    feed.tracing(&format!(
        "case $SEMEL_KEY in {refused}) [ -e {} ] || {{ echo unreadable >&2; exit 65; }};; esac;",
        mended.display()
    ))
}

fn mend(feed: &Feed) {
    std::fs::write(feed.path("mended"), b"").expect("is written");
}

fn requeue(place: &Place, event: &str, more: &str) -> Ran {
    let mut command = semel();
    command.env("SEMEL_STORE", place.url()).args(["receipts", "requeue", "orders", event]);
    ran(command.args(more.split(' ').filter(|word| !word.is_empty())))
}

#[test]
fn a_dead_letter_is_requeued_through_the_server_that_holds_the_folder() {
    let (place, feed) = (Place::file(), Feed::of_orders(3));
    let exec = mendable(&feed, "*order-1*");
    consumed(&place, &feed.source(), &exec, MORE).fine();
    let (server, url) = serve(place.url(), &[]);
    let through_it = || {
        let mut command = semel();
        ran(command.env("SEMEL_STORE", &url).args(["receipts", "requeue", "orders", "\"order-1\"", "--yes"]))
    };
    assert!(through_it().fine().contains("requeue 1"));
    assert!(through_it().failed().contains("waits for a consumer"));
    drop(server);
    mend(&feed);
    let account = consumed(&place, &feed.source(), &exec, MORE).fine();
    assert!(account.contains("requeued             1"), "{account}");
}

fn dead(place: &Place) -> Vec<Value> {
    on(place, "receipts orders --dead --json --limit 1000").json_lines()
}

fn a_dead_letter_is_shown_requeued_and_processed_by_the_next_consumer(place: &Place) {
    let feed = Feed::of_orders(3);
    let exec = mendable(&feed, "*order-1*");
    consumed(place, &feed.source(), &exec, MORE).fine();
    let shown = on(place, "receipts show orders \"order-1\"").fine();
    for part in ["unreadable", "\"cents\": 4200", "events.jsonl at ", "semel receipts requeue orders"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let json = on(place, "receipts show orders \"order-1\" --json").json();
    assert_eq!(json["dead_letter"]["payload"], "{\"id\":\"order-1\",\"cents\":4200}");

    let audit = feed.path("audit.jsonl");
    let error = requeue(place, "\"order-1\"", "").failed();
    assert!(error.contains("nothing was changed") && error.contains("happens twice"), "{error}");
    let said = requeue(place, "\"order-1\"", &format!("--yes --audit {}", audit.display())).fine();
    assert!(said.contains("requeue 1") && said.contains("the next that starts"), "{said}");
    assert!(requeue(place, "\"order-1\"", "--yes").failed().contains("waits for a consumer"));
    assert!(requeue(place, "\"order-2\"", "--yes").failed().contains("no dead letter"));
    assert!(requeue(place, "order-1", "--yes").failed().contains("Keys must be exact"));
    let lines = std::fs::read_to_string(&audit).expect("is there");
    let results: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    assert_eq!(results.len(), 2, "{lines}");
    assert_eq!(
        (&results[0]["action"], &results[1]["result"]),
        (&"requeue".into(), &"done".into()),
        "{lines}"
    );
    assert!(on(place, "receipts orders").fine().contains("requeued, waits"));

    mend(&feed);
    let account = consumed(place, &feed.source(), &exec, MORE).fine();
    assert!(
        account.contains("requeued             1") && account.contains("processed            1"),
        "{account}"
    );
    let traces = feed.traces();
    assert!(traces.len() == 3 && traces.values().all(|attempts| attempts == &[1]), "{traces:?}");
    assert_eq!(dead(place), [] as [Value; 0]);
    let all = on(place, "receipts orders").fine();
    assert!(all.contains("processed, requeue 1") && all.contains("3 events: 3 processed."), "{all}");
    // Nobody runs it again.
    consumed(place, &feed.source(), &exec, MORE).fine();
    assert_eq!(feed.runs(), 3);
}

#[test]
fn a_consumer_that_is_killed_in_a_requeued_event_leaves_one_effect_on_a_folder() {
    let (place, feed) = (Place::file(), Feed::of_orders(1));
    consumed(&place, &feed.source(), "exit 65", MORE).fine();
    requeue(&place, "\"order-0\"", "--yes").fine();
    // The first run kills its consumer, and has no effect itself.
    let killed = feed.path("killed");
    let exec =
        feed.tracing(&format!("[ -e {0} ] || {{ touch {0}; kill -9 $PPID; exit 1; }};", killed.display()));
    let ran = consumed(&place, &feed.source(), &exec, MORE);
    assert_eq!((ran.code, feed.runs()), (None, 0), "it was killed: {}", ran.err);
    let left = on(&place, "receipts orders --json").json();
    assert_eq!((&left["state"], &left["requeue"]), (&"running".into(), &1.into()), "{left}");
    until("its lease is over, and the next one has run it", || {
        consumed(&place, &feed.source(), &exec, MORE).fine();
        (feed.runs() > 0).then_some(())
    });
    assert_eq!(feed.traces()["\"order-0\""], [2], "the second attempt knew");
    consumed(&place, &feed.source(), &exec, MORE).fine();
    assert_eq!(feed.runs(), 1);
    assert_eq!(dead(&place), [] as [Value; 0]);
}

#[test]
fn two_running_consumers_process_each_requeued_event_once() {
    let (place, feed, other) = (Place::postgres(), Feed::of_orders(20), Feed::new());
    let exec = mendable(&feed, "*");
    let follow = |feed: &Feed| format!("{}?follow", feed.source());
    consumed(&place, &feed.source(), &exec, MORE).fine();
    assert_eq!(dead(&place).len(), 20);
    mend(&feed);
    let exec = feed.tracing("sleep 0.2;");
    let consumers = [follow(&feed), follow(&other)].map(|source| {
        Consuming::start(&mut consume(&place, &source, &exec, "--key pointer:/id --parallel 4"))
    });
    let said = on(&place, "receipts requeue orders --all-dead --yes").fine();
    assert!(
        said.contains("Requeued 20 dead letters") && said.contains("takes it up within seconds"),
        "{said}"
    );
    until("all are processed", || (feed.runs() >= 20).then_some(()));
    until("all are settled", || dead(&place).is_empty().then_some(()));
    let traces = feed.traces();
    assert!(traces.len() == 20 && traces.values().all(|attempts| attempts == &[1]), "{traces:?}");
    drop(consumers);
}

#[test]
fn what_is_over_the_bound_is_not_kept_and_cannot_be_requeued() {
    let (place, feed) = (Place::file(), Feed::of_orders(1));
    let ran = consumed(&place, &feed.source(), "exit 65", &format!("{MORE} --dead-letter-bytes-max 10B"));
    assert!(ran.err.contains("its payload is not kept"), "{}", ran.err);
    let shown = on(&place, "receipts show orders \"order-0\"").fine();
    assert!(shown.contains("The payload is not kept") && shown.contains("SHA-256"), "{shown}");
    assert!(requeue(&place, "\"order-0\"", "--yes").failed().contains("Send it anew"));
    let none = on(&place, "receipts requeue orders --all-dead --yes").fine();
    assert!(
        none.contains("has no dead letter to requeue") && none.contains("1 cannot be requeued"),
        "{none}"
    );
    assert!(on(&place, "keys list --operation requeues --json").fine().is_empty(), "nothing was written");
    let ran = consumed(&place, &feed.source(), "exit 65", &format!("{MORE} --dead-letter-bytes-max 0B"));
    assert!(ran.err.contains("kept nowhere"), "{}", ran.err);
}

#[test]
fn the_summary_counts_what_receipts_lists_also_without_keys() {
    let (place, feed) = (Place::file(), Feed::of_orders(4));
    feed.append_text("{\"cents\":1}\nno JSON\n");
    let exec = mendable(&feed, "*order-1*|*order-3*|''");
    let more = format!("{MORE} --on-missing-key dead-letter");
    let account = consumed(&place, &feed.source(), &exec, &more).fine();
    assert!(account.contains("dead letters         4"), "{account}");
    let letters = dead(&place);
    assert_eq!(letters.len(), 4, "{letters:?}");
    let keyless: Vec<_> = letters.iter().filter(|letter| letter["has_key"] == false).collect();
    assert_eq!(keyless.len(), 2);
    let place_of = keyless[0]["event"].as_str().expect("is text").to_owned();
    assert!(on(&place, &format!("receipts show orders {place_of}")).fine().contains("Dead letter"));

    let preview = on(&place, "receipts requeue orders --all-dead").failed();
    assert!(preview.contains("4 dead letters of orders") && preview.contains("unreadable"), "{preview}");
    let two = on(&place, "receipts requeue orders --all-dead --limit 2 --yes").fine();
    assert!(two.contains("Requeued 2 dead letters"), "{two}");
    let rest = on(&place, "receipts requeue orders --all-dead --yes").fine();
    assert!(rest.contains("Requeued 2 dead letters"), "{rest}");
    mend(&feed);
    let account = consumed(&place, &feed.source(), &exec, &more).fine();
    assert!(account.contains("requeued             4"), "{account}");
    assert_eq!(feed.traces()[""], [1, 1], "they have no key");
    assert_eq!(dead(&place), [] as [Value; 0]);
}
