//! The filter of a list of keys as it stands in an address: the words of a selection, and the order of the list.

use maud::{Markup, html};
use semel::RecordId;

use crate::access::Caller;
use crate::dashboard::parts::labelled;
use crate::dashboard::query::{Pairs, address};
use semel_ops::format::scope;
use semel_ops::lookup::{IdPrefix, Order, SelectedState, Selection};

/// The words that a list knows beside those of a selection.
const SORT: &str = "sort";
const AFTER: &str = "after";

/// A field of the form: its word, its label, and an example.
type Field = (&'static str, &'static str, &'static str);

const SCOPE: Field = ("scope", "Scope", "acme/eu, and below");
const OPERATION: Field = ("operation", "Operation", "charge");
const NAME: Field = ("name", "Name or id", "order-1042");
const NAME_PREFIX: Field = ("name_prefix", "Name begins with", "order-");
const LABEL: Field = ("label", "Label begins with", "POST /charges");
const REASON: Field = ("reason", "Reason contains", "timed out");
const OLDER_THAN: Field = ("older_than", "Older than", "10m, 2h, 3d");

/// A filter, as it was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::dashboard) struct KeyFilter(Vec<(&'static str, String)>);

impl KeyFilter {
    /// The words of a filter among these. Links from elsewhere may carry more.
    pub(in crate::dashboard) fn read(query: &Pairs) -> Self {
        let words = || Selection::WORDS.into_iter().chain([SORT, AFTER]);
        let known = |name: &str| words().find(|word| *word == name);
        let typed = query.iter().filter_map(|(name, value)| {
            let value = value.trim();
            Some((known(name)?, value.to_owned())).filter(|_| !value.is_empty())
        });
        Self(typed.collect())
    }

    /// What was typed for this word, or nothing.
    pub(super) fn text(&self, word: &str) -> &str {
        self.0.iter().find(|(name, _)| *name == word).map_or("", |(_, value)| value)
    }

    /// Whether no key is left out.
    pub(in crate::dashboard) fn is_empty(&self) -> bool {
        self.0.iter().all(|(word, _)| matches!(*word, SORT | AFTER))
    }

    /// Whether at most a key is given: finding it is all that is left to do.
    pub(super) fn is_a_key_alone(&self) -> bool {
        self.0.iter().all(|(word, _)| matches!(*word, "scope" | "operation" | "name"))
    }

    /// The records that are meant, within the caller's scope; else what to change.
    pub(in crate::dashboard) fn selection(&self, caller: &Caller) -> Result<Selection, String> {
        let mut selection = Selection::default();
        for (word, value) in &self.0 {
            if *word == "scope" {
                selection.scope = scope::parse(value)?.iter().map(|part| part.trim().into()).collect();
            } else {
                selection.take(word, value)?;
            }
        }
        selection.scope = within(caller.scope(), selection.scope)?;
        Ok(selection)
    }

    /// How the list is sorted.
    pub(super) fn order(&self) -> Result<Order, String> {
        match self.text(SORT) {
            "" => Ok(Order::default()),
            word => word.parse(),
        }
    }

    /// Behind which record the page begins.
    pub(super) fn after(&self) -> Result<Option<RecordId>, String> {
        match self.text(AFTER) {
            "" => Ok(None),
            id => Ok(Some(id.parse::<IdPrefix>()?.last())),
        }
    }

    /// The address of a page with this filter, from its first page on.
    pub(in crate::dashboard) fn address(&self, path: &str, more: &[(&str, &str)]) -> String {
        let words = self.0.iter().filter(|(word, _)| *word != AFTER);
        address(path, more.iter().copied().chain(words.map(|(word, value)| (*word, value.as_str()))))
    }

    /// The address of the page of the list behind this record.
    pub(super) fn behind(&self, id: RecordId) -> String {
        self.address("/keys", &[(AFTER, &id.to_string())])
    }

    /// The filter as hidden fields of a form.
    pub(super) fn hidden(&self) -> Markup {
        html! {
            @for (word, value) in self.0.iter().filter(|(word, _)| *word != AFTER) {
                input type="hidden" name=(word) value=(value);
            }
        }
    }

    /// The form of the list of all keys.
    pub(super) fn form(&self) -> Markup {
        let fields = [SCOPE, OPERATION, NAME, NAME_PREFIX, LABEL, REASON, OLDER_THAN];
        html! {
            form.search method="get" action="/keys" role="search" aria-label="Keys" {
                div.fields { @for field in fields { (self.field(field)) } (self.sort_field()) }
                div.row { (self.states()) (buttons("/keys")) }
            }
        }
    }

    /// The form of the list of held keys.
    pub(in crate::dashboard) fn held_form(&self) -> Markup {
        html! {
            form.search method="get" action="/attention" role="search" aria-label="Held keys" {
                div.fields { @for field in [SCOPE, LABEL, NAME_PREFIX, REASON] { (self.field(field)) } }
                div.row { div.short { (self.field(OLDER_THAN)) } (buttons("/attention")) }
            }
        }
    }

    fn field(&self, (word, label, example): Field) -> Markup {
        html! {
            div.field {
                label for=(word) { (label) }
                input id=(word) name=(word) value=(self.text(word)) placeholder=(example) autocomplete="off" spellcheck="false";
            }
        }
    }

    fn sort_field(&self) -> Markup {
        html! {
            div.field {
                label for=(SORT) { "Sort by" }
                select id=(SORT) name=(SORT) {
                    @for order in Order::ALL {
                        @let value = if order == Order::default() { "" } else { order.as_str() };
                        option value=(value) selected[self.text(SORT) == value] { (order_label(order)) }
                    }
                }
            }
        }
    }

    fn states(&self) -> Markup {
        let is_chosen = |state: &str| self.0.iter().any(|(word, value)| *word == "state" && value == state);
        html! {
            fieldset {
                legend.sr { "State" }
                @for state in SelectedState::ALL.map(SelectedState::as_str) {
                    label.choice {
                        input type="checkbox" name="state" value=(state) checked[is_chosen(state)];
                        (labelled(state, state))
                    }
                }
            }
        }
    }
}

fn order_label(order: Order) -> &'static str {
    match order {
        Order::Id => "id",
        Order::Age => "first seen, oldest first",
        Order::Changed => "last write, newest first",
    }
}

fn buttons(clear: &str) -> Markup {
    html! {
        div.buttons {
            a.button.quiet href=(clear) { "Clear" }
            button.primary type="submit" { "Search" }
        }
    }
}

/// The scope that was typed, if the caller reaches it; the caller's own if none was.
fn within(own: &[Box<str>], typed: Vec<Box<str>>) -> Result<Vec<Box<str>>, String> {
    if typed.len() >= own.len() && typed.starts_with(own) {
        return Ok(typed);
    }
    if own.starts_with(&typed) {
        return Ok(own.to_vec());
    }
    Err(format!("your token reaches {} only", scope::shown(own.iter().map(|part| &**part))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &[&str]) -> Vec<Box<str>> {
        text.iter().map(|part| (*part).into()).collect()
    }

    fn filter(query: &[(&str, &str)]) -> KeyFilter {
        KeyFilter::read(
            &query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        )
    }

    #[test]
    fn no_search_leaves_the_scope_of_its_caller() {
        let own = parts(&["acme", "eu"]);
        assert_eq!(within(&own, parts(&[])), Ok(own.clone()));
        assert_eq!(within(&own, parts(&["acme"])), Ok(own.clone()));
        assert_eq!(within(&own, parts(&["acme", "eu", "billing"])), Ok(parts(&["acme", "eu", "billing"])));
        for foreign in [parts(&["zeta"]), parts(&["acme", "us"]), parts(&["acme", "eux", "a"])] {
            assert!(within(&own, foreign).is_err());
        }
        assert_eq!(within(&[], parts(&["zeta"])), Ok(parts(&["zeta"])));
    }

    #[test]
    fn a_filter_is_read_from_an_address_and_written_back_to_one() {
        let typed = filter(&[
            ("scope", "acme/eu"),
            ("label", "POST /charges"),
            ("state", "held"),
            ("state", "lapsed"),
            ("reason", ""),
            ("after", "3f2a"),
            ("utm", "x"),
        ]);
        assert_eq!(
            typed.address("/keys", &[]),
            "/keys?scope=acme%2Feu&label=POST%20%2Fcharges&state=held&state=lapsed"
        );
        let selection = typed.selection(&Caller::local()).expect("is one");
        assert_eq!(selection.to_string(), "scope acme/eu, state held or lapsed, label POST /charges…");
    }

    #[test]
    fn a_word_with_a_value_that_means_nothing_is_refused_with_what_does() {
        for (word, value, named) in [("state", "stuck", "held"), ("older_than", "soon", "soon")] {
            let error = filter(&[(word, value)]).selection(&Caller::local()).expect_err("means nothing");
            assert!(error.contains(named), "{error}");
        }
        assert!(filter(&[("sort", "size")]).order().is_err());
        assert!(filter(&[("after", "zz")]).after().is_err());
    }
}
