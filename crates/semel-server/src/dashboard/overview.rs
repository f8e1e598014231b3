//! What runs, what is stuck, and how the store is.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use semel::RecordId;
use semel::clock::Timestamp;
use semel::record::{Record, Running, State as RecordState};
use tokio::time::{Instant, timeout};

use super::answer::{Refused, shown};
use super::attention::nothing_held;
use super::chart::Chart;
use super::frame::{Frame, Tab};
use super::parts::{ago, key_link, labelled, lasting, nothing, relative, state};
use super::session::Visitor;
use crate::access::Need;
use crate::state::AppState;
use semel_ops::format::number::{counted, grouped};
use semel_ops::format::{record, span};
use semel_ops::lookup::Counted;

/// How long the store may take to say how it is.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a page waits for the first count of a server that has just started.
const FIRST_COUNT: Duration = Duration::from_millis(500);
/// How many of the oldest are shown.
const OLDEST_SHOWN: usize = 10;

const CHARTS: [Chart; 6] = [
    Chart { word: "run", meaning: "the caller runs the work", count: |stats| stats.run },
    Chart { word: "replay", meaning: "got the stored outcome", count: |stats| stats.replay },
    Chart { word: "busy", meaning: "in progress elsewhere", count: |stats| stats.busy },
    Chart { word: "mismatch", meaning: "same key, different request", count: |stats| stats.mismatch },
    Chart { word: "held", meaning: "needs a person", count: |stats| stats.held },
    Chart { word: "lost", meaning: "a newer run took over", count: |stats| stats.lost },
];

/// How the store is.
struct Probe {
    now: Option<Timestamp>,
    took: Duration,
    trouble: Option<String>,
}

pub(super) async fn show(State(served): State<Arc<AppState>>, visitor: Visitor) -> Result<Response, Refused> {
    visitor.need(Need::List)?;
    let probe = probe(&served).await;
    let counted = first_count(&served, &visitor).await;
    let now = probe.now.or(counted.as_of).unwrap_or_default();
    let content = html! {
        div.head { h1 { "Overview" } p.live-status #live-status hidden { } }
        noscript { p.hint { "Without JavaScript, this page does not update itself. Reload it for newer numbers." } }
        (counts(&counted, &served, now))
        (rates(&served, &visitor))
        div.halves {
            div.stack {
                (oldest(("Needs a person", "held"), "Held, oldest first.", &counted.oldest_held, counted.held, now))
                (feed())
            }
            (oldest(("Running now", "running"), "Oldest first.", &counted.oldest_running, counted.running, now))
        }
        (store(&served, &visitor, &probe))
    };
    Ok(shown(&visitor, &Frame { title: "Overview", tab: Tab::Overview }, &content))
}

async fn probe(served: &AppState) -> Probe {
    let started_at = Instant::now();
    // No record has this id: that there is none is an answer, too.
    let asked = timeout(PROBE_TIMEOUT, served.store.load(vec![RecordId::from_bytes([0; 32])])).await;
    let took = started_at.elapsed();
    match asked {
        Ok(Ok(answer)) => Probe { now: Some(answer.now), took, trouble: None },
        Ok(Err(error)) => Probe { now: None, took, trouble: Some(error.to_string()) },
        Err(_) => Probe {
            now: None,
            took,
            trouble: Some(format!("no answer within {}", span::shown(PROBE_TIMEOUT))),
        },
    }
}

pub(super) async fn first_count(served: &AppState, visitor: &Visitor) -> Arc<Counted> {
    let mut walks = served.census.walks();
    let counted = served.census.latest(visitor.caller.scope());
    if counted.as_of.is_some() {
        return counted;
    }
    // Without a count, the page says that there is none yet.
    let _ = timeout(FIRST_COUNT, walks.changed()).await;
    served.census.latest(visitor.caller.scope())
}

fn counts(counted: &Counted, served: &AppState, now: Timestamp) -> Markup {
    let tiles = [
        ("held", counted.held, "/attention", "need a person"),
        ("running", counted.running, "/keys?state=running", "hold a permit"),
        ("lapsed", counted.lapsed, "/keys?state=lapsed", "of these, not renewed in time"),
        ("done", counted.done, "/keys?state=done", "have an outcome"),
        ("released", counted.released, "/keys?state=released", "run at the next claim"),
    ];
    html! {
        section aria-labelledby="counts-title" {
            h2.sr #counts-title { "Records by state" }
            div #counts data-live {
                ul.tiles {
                    @for (word, count, address, meaning) in tiles {
                        li class={ "tile " (word) @if count == 0 { " none" } } {
                            a href=(address) {
                                (labelled(word, word))
                                strong data-test={ (word) "-count" } { (grouped(count)) }
                                span.meaning { (meaning) }
                            }
                        }
                    }
                }
                p.as-of { (as_of(counted, served, now)) }
            }
            p.sr #counts-said aria-live="polite" data-live { (counted.running) " running, " (counted.held) " held" }
        }
    }
}

fn as_of(counted: &Counted, served: &AppState, now: Timestamp) -> Markup {
    html! {
        @match counted.as_of {
            Some(at) => { (semel_ops::format::number::counted(counted.records(), "record")) ", counted " (ago(at, now)) " in " (span::shown(counted.took)) "." }
            None => { "The first count of the store is still running." }
        }
        @if let Some(trouble) = served.census.trouble() {
            " " strong.wrong { "The last count failed: " } (trouble)
        }
    }
}

fn rates(served: &AppState, visitor: &Visitor) -> Markup {
    let samples = served.rates.samples();
    html! {
        section aria-labelledby="rates-title" {
            div.head { h2 #rates-title { "Decisions a second" } p.muted { "the last 15 minutes of this server" } }
            @if visitor.caller.scope().is_empty() {
                div.charts #rates data-live {
                    @for chart in &CHARTS { (chart.draw(&samples)) }
                }
            } @else {
                (nothing("Rates are counted for the whole server, and your token reaches one scope: they are not shown."))
            }
        }
    }
}

fn oldest(
    (title, word): (&str, &str),
    meaning: &str,
    records: &[Record],
    all: u64,
    now: Timestamp,
) -> Markup {
    let (id, more) = (format!("oldest-{word}"), all.saturating_sub(OLDEST_SHOWN as u64));
    html! {
        section.card aria-labelledby={ (id) "-title" } {
            div.head { h2 id={ (id) "-title" } { (title) } p.muted { (meaning) } }
            div id=(id) data-live {
                @if records.is_empty() {
                    @if word == "held" { (nothing_held()) } @else { (nothing("No key is running. A key is here from its claim until it is completed, released or held.")) }
                } @else {
                    ol.oldest {
                        @for record in records.iter().take(OLDEST_SHOWN) { (row(record, now)) }
                    }
                }
                @if more > 0 { p.more { a href=(if word == "held" { "/attention" } else { "/keys?state=running" }) { "All " (counted(all, "key")) } } }
            }
        }
    }
}

fn row(found: &Record, now: Timestamp) -> Markup {
    let since = lasting(now.since(record::since(found)));
    html! {
        li data-test="key-row" {
            div.what { (key_link(found)) }
            div.how {
                (state(found, now))
                span.since { "for " time datetime=(semel_ops::format::moment::rfc3339(record::since(found))) { (since) } }
                span.why { bdi { (record::who_or_why(found)) } }
                @if let RecordState::Running(running) = &found.state {
                    span.muted { (lease(running, now)) }
                }
                @if found.attempt > 1 { span.muted { "attempt " (found.attempt) } }
            }
        }
    }
}

fn lease(running: &Running, now: Timestamp) -> String {
    let until = running.lease_until();
    if running.lease_is_good(now) {
        format!("lease good for {}", span::shown(until.since(now)))
    } else {
        format!("lease lapsed {}", relative(until, now))
    }
}

/// Filled by the script alone, and hidden without it.
fn feed() -> Markup {
    html! {
        section.card #feed-box hidden aria-labelledby="feed-title" {
            div.head { h2 #feed-title { "Live" } p.muted { "decisions of this server" } }
            ol.feed #feed {}
            p.nothing #feed-empty { "No decision since this page was loaded." }
        }
    }
}

fn store(served: &AppState, visitor: &Visitor, probe: &Probe) -> Markup {
    html! {
        section.card aria-labelledby="store-title" {
            h2 #store-title { "Store" }
            div #store data-live {
                dl.facts.across {
                    div { dt { "Address" } dd { code { bdi { (served.store_address) } } } }
                    div {
                        dt { "Health" }
                        dd {
                            @match &probe.trouble {
                                None => { (labelled("done", "answers")) " " span.muted { "in " (millis(probe.took)) } (claims(visitor)) }
                                Some(trouble) => { strong.wrong { "does not answer: " } (trouble) }
                            }
                        }
                    }
                    div { dt { "What it acknowledged survives" } dd { (served.store.survives()) } }
                }
            }
        }
    }
}

/// What a store that answers may still lack.
fn claims(visitor: &Visitor) -> Markup {
    html! {
        @if !visitor.store.is_fine() { "; " strong.wrong { (visitor.store) } }
    }
}

/// Short spans to a tenth of a millisecond: a store in memory takes no longer.
fn millis(span: Duration) -> String {
    let tenths = span.as_micros() / 100;
    if tenths == 0 {
        return "less than 0.1 ms".to_owned();
    }
    format!("{}.{} ms", tenths / 10, tenths % 10)
}
