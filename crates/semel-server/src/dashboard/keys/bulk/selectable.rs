//! A list in which keys can be selected.

use maud::{Markup, html};
use semel::record::Record;

use crate::access::Need;
use crate::dashboard::keys::filter::KeyFilter;
use crate::dashboard::parts::heading;
use crate::dashboard::session::Visitor;

/// A list in which keys can be selected, with what can be done to the selected ones and to all that match.
pub(in crate::dashboard) fn selectable(filter: &KeyFilter, visitor: &Visitor, list: &Markup) -> Markup {
    if !visitor.caller.may(Need::Act) {
        return list.clone();
    }
    let all = |action: &str| filter.address("/actions", &[("action", action), ("match", "all")]);
    html! {
        form.selection method="get" action="/actions" {
            (filter.hidden())
            (list)
            div.bulk {
                fieldset {
                    legend { "Selected keys" }
                    button type="submit" name="action" value="resolve" data-test="resolve-selected" { "Resolve…" }
                    button type="submit" name="action" value="release" data-test="release-selected" { "Release…" }
                }
                fieldset {
                    legend { "All keys that match" }
                    a.button href=(all("resolve")) data-test="resolve-all" { "Resolve all…" }
                    a.button href=(all("release")) data-test="release-all" { "Release all…" }
                }
            }
        }
    }
}

/// The head of the column with the boxes. The script shows the box that selects all.
pub(in crate::dashboard) fn select_all() -> Markup {
    html! {
        th.box scope="col" {
            span.sr { "Select" }
            input type="checkbox" data-select-all hidden aria-label="Select all keys on this page";
        }
    }
}

/// The box that selects a key.
pub(in crate::dashboard) fn select(record: &Record) -> Markup {
    html! {
        td.box {
            input type="checkbox" name="id" value=(record.key.id()) aria-label={ "Select " (heading(record)) " " (record.key.name()) };
        }
    }
}
