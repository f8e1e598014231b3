//! Says what an action means, and asks.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use semel::clock::Timestamp;
use semel::record::{Record, Running, State as RecordState};

use super::detail::title;
use super::lookup::Found;
use crate::access::Need;
use crate::dashboard::answer::{Refused, shown};
use crate::dashboard::frame::{Frame, Tab};
use crate::dashboard::session::Visitor;
use crate::state::AppState;
use semel_ops::format::{record, span};

pub(in crate::dashboard) async fn confirm_release(
    State(served): State<Arc<AppState>>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let Found { record, now } = Found::by_id(&served, &visitor, &id).await?;
    let content = html! {
        (title(&record, now))
        section.card.confirm aria-labelledby="confirm-title" {
            h2 #confirm-title { "Release it?" }
            @match &record.state {
                RecordState::Running(running) => { (what_release_means(running, now)) (release_form(&record, &visitor)) }
                RecordState::Held(_) => { (HeldRelease) (release_form(&record, &visitor)) }
                RecordState::Released(_) => { p { "It is released already: the next claim runs." } (back(&record)) }
                RecordState::Done(_) => {
                    p { "It is done, and cannot be released: an outcome that somebody was told of is never taken back. It is forgotten \
                         when its retention ends, in " (record::left(&record, now)) "." }
                    (back(&record))
                }
            }
        }
    };
    Ok(shown(&visitor, &Frame { title: "Release", tab: Tab::Keys }, &content))
}

pub(in crate::dashboard) async fn confirm_resolve(
    State(served): State<Arc<AppState>>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    visitor.need(Need::Act)?;
    let Found { record, now } = Found::by_id(&served, &visitor, &id).await?;
    let content = html! {
        (title(&record, now))
        section.card.confirm aria-labelledby="confirm-title" {
            h2 #confirm-title { "Resolve it" }
            @if matches!(record.state, RecordState::Held(_)) {
                p { "Find out first whether the effect landed. Then say which of the two it is:" }
                (resolve_form(&record, &visitor))
            } @else {
                p { "It is not held, and there is nothing to resolve: " (instead(&record)) "." }
                (back(&record))
            }
        }
    };
    Ok(shown(&visitor, &Frame { title: "Resolve", tab: Tab::Keys }, &content))
}

/// What it means to release a held record.
struct HeldRelease;

impl maud::Render for HeldRelease {
    fn render(&self) -> Markup {
        html! { p { "The next claim runs it again. " strong { "If its effect landed after all, it happens twice." } } }
    }
}

fn what_release_means(running: &Running, now: Timestamp) -> Markup {
    let renewed = span::shown(now.since(running.leased_at));
    html! {
        @if running.lease_is_good(now) {
            p.flash.warning { "Its lease is good: it was renewed " (renewed) " ago, so the run is probably still going on." }
        } @else {
            p { "Its lease has lapsed: it was last renewed " (renewed) " ago." }
        }
        p {
            strong { "Releasing stops nobody." } " If " bdi { (running.owner) } " still runs, it goes on beside the next claim until it notices; its \
            complete is refused as lost, and its outcome is not stored. Stop that process first if you can."
        }
    }
}

fn instead(record: &Record) -> &'static str {
    match &record.state {
        RecordState::Running(_) => "somebody holds a permit, which a release takes away",
        RecordState::Done(_) => "it has an outcome already, which never changes",
        RecordState::Released(_) => "the next claim runs it",
        RecordState::Held(_) => "look again",
    }
}

/// What was looked at: a run by its fence, which stays the same while it renews its lease; anything else by its version.
fn shown_version(record: &Record) -> u64 {
    match &record.state {
        RecordState::Running(running) => running.fence.get(),
        RecordState::Held(_) | RecordState::Done(_) | RecordState::Released(_) => record.version.get(),
    }
}

/// What every form of an action holds: whose it is, and which version of the record was looked at.
fn sealed(record: &Record, visitor: &Visitor) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(visitor.csrf());
        input type="hidden" name="version" value=(shown_version(record));
    }
}

fn release_form(record: &Record, visitor: &Visitor) -> Markup {
    html! {
        form method="post" action={ "/keys/" (record.key.id()) "/release" } {
            (sealed(record, visitor))
            (reason("reason", "released by hand"))
            div.buttons {
                button.danger type="submit" data-test="confirm" { "Release it" }
                a.button.quiet href={ "/keys/" (record.key.id()) } { "Cancel" }
            }
        }
    }
}

fn resolve_form(record: &Record, visitor: &Visitor) -> Markup {
    let action = format!("/keys/{}/resolve", record.key.id());
    html! {
        div.choices {
            form.choice-card method="post" action=(action) aria-labelledby="landed" {
                h3 #landed { "The effect landed" }
                p { "It becomes done for good: every retry gets the outcome below. " strong { "That cannot be undone." } }
                (sealed(record, visitor))
                input type="hidden" name="how" value="done";
                div.field {
                    label for="kind" { "Kind of the outcome" }
                    select #kind name="kind" { option value="success" { "success" } option value="failure" { "failure" } }
                }
                div.field {
                    label for="outcome" { "Outcome that retries get, exactly as it stands here" }
                    textarea #outcome name="outcome" rows="5" spellcheck="false" placeholder="{\"id\": \"ch_1042\"}" {}
                }
                button.primary type="submit" data-test="confirm" { "Complete it" }
            }
            form.choice-card method="post" action=(action) aria-labelledby="not-landed" {
                h3 #not-landed { "It did not" }
                (HeldRelease)
                (sealed(record, visitor))
                input type="hidden" name="how" value="release";
                (reason("why-released", "looked, and it did not land"))
                button.danger type="submit" data-test="confirm-release" { "Release it" }
            }
        }
        p { a.button.quiet href={ "/keys/" (record.key.id()) } { "Cancel" } }
    }
}

fn reason(id: &str, filled_in: &str) -> Markup {
    html! {
        div.field {
            label for=(id) { "Why, for others and the audit log" }
            input id=(id) name="reason" value=(filled_in) required maxlength="512";
        }
    }
}

fn back(record: &Record) -> Markup {
    html! { p { a.button href={ "/keys/" (record.key.id()) } { "Back to the key" } } }
}
