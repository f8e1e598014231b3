//! What one action on many keys asks for, as it stands in an address and in a form.

use maud::{Markup, html};
use semel::RecordId;
use semel::record::StateKind;

use crate::dashboard::keys::filter::KeyFilter;
use crate::dashboard::query::Pairs;
use crate::dashboard::session::Visitor;
use semel_ops::lookup::{IdPrefix, SelectedState, Selection};

/// The field with the reason of the action: `reason` is a word of the filter.
pub(super) const WHY: &str = "why";
/// How many keys one form acts on.
pub(super) const LIMIT: usize = 10_000;
/// How many keys may be selected one by one: more than a list shows.
const IDS_MAX: usize = 200;

pub(super) const HELD: SelectedState = SelectedState::Is(StateKind::Held);
/// What a release can be of.
const RELEASABLE: [SelectedState; 3] = [HELD, SelectedState::Is(StateKind::Running), SelectedState::Lapsed];

/// What is done to every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BulkAction {
    Release,
    Resolve,
}

impl BulkAction {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Resolve => "resolve",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Release => "Release many keys",
            Self::Resolve => "Resolve many keys",
        }
    }

    /// The states that the action is for.
    fn states(self) -> &'static [SelectedState] {
        match self {
            Self::Release => &RELEASABLE,
            Self::Resolve => &[HELD],
        }
    }

    /// The part of a selection that the action is for. Without a state that is what is held.
    fn narrowed(self, mut selection: Selection) -> Result<Selection, String> {
        let has_states = !selection.states.is_empty();
        selection.states.retain(|state| self.states().contains(state));
        if has_states && selection.states.is_empty() {
            let states: Vec<_> = self.states().iter().map(|state| state.as_str()).collect();
            let (action, states) = (self.as_str(), states.join(" or "));
            return Err(format!(
                "The filter selects no state that a {action} is for: choose {states}, or no state."
            ));
        }
        Ok(selection.held_by_default())
    }
}

/// What was asked for: in the address of the page that asks, and in its form.
pub(super) struct BulkAsk {
    pub(super) action: BulkAction,
    /// The keys that were selected; `None` for all that match.
    pub(super) ids: Option<Vec<RecordId>>,
    /// The filter of the list that they were selected in.
    pub(super) filter: KeyFilter,
}

impl BulkAsk {
    pub(super) fn read(pairs: &Pairs) -> Result<Self, String> {
        let action = match value(pairs, "action") {
            "release" => BulkAction::Release,
            "resolve" => BulkAction::Resolve,
            _ => return Err("The address names no action: use release or resolve.".to_owned()),
        };
        let digits: Vec<&String> =
            pairs.iter().filter(|(name, _)| name == "id").map(|(_, value)| value).collect();
        if digits.len() > IDS_MAX {
            return Err(format!("At most {IDS_MAX} keys can be selected one by one; use a filter for more."));
        }
        let id = |digits: &String| digits.parse::<IdPrefix>().ok().and_then(|id| id.whole());
        let ids: Option<Vec<_>> = digits.into_iter().map(id).collect();
        let ids = ids.ok_or("The address has an id that is none: ids have 64 hex digits.")?;
        // Without an id, nothing must be taken for everything.
        let ids = match (value(pairs, "match"), ids.is_empty()) {
            ("all", true) => None,
            (_, false) => Some(ids),
            (_, true) => return Err("No key was selected. Go back and select at least one.".to_owned()),
        };
        Ok(Self { action, ids, filter: KeyFilter::read(pairs) })
    }

    pub(super) fn selection(&self, visitor: &Visitor) -> Result<Selection, String> {
        if self.ids.is_none() {
            return self.action.narrowed(self.filter.selection(&visitor.caller)?);
        }
        let (scope, states) = (visitor.caller.scope().to_vec(), self.action.states().to_vec());
        Ok(Selection { scope, states, ..Selection::default() })
    }

    /// All of it as hidden fields of a form.
    pub(super) fn hidden(&self) -> Markup {
        html! {
            input type="hidden" name="action" value=(self.action.as_str());
            @match &self.ids {
                None => { input type="hidden" name="match" value="all"; }
                Some(ids) => { @for id in ids { input type="hidden" name="id" value=(id); } }
            }
            (self.filter.hidden())
        }
    }

    /// The list that the keys were selected in.
    pub(super) fn list(&self) -> String {
        self.filter.address("/keys", &[])
    }
}

/// What a query or a form says under this name, or nothing.
pub(super) fn value<'a>(pairs: &'a Pairs, wanted: &str) -> &'a str {
    pairs.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<BulkAsk, String> {
        BulkAsk::read(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn nothing_selected_is_never_taken_for_everything() {
        for pairs in [
            &[("action", "release")][..],
            &[("action", "release"), ("state", "held")],
            &[("action", "release"), ("match", "some")],
            &[("action", "release"), ("id", "")],
            &[("action", "release"), ("id", "3f2a")],
            &[("match", "all")],
            &[("action", "remove"), ("match", "all")],
        ] {
            assert!(read(pairs).is_err(), "{pairs:?}");
        }
        let id = "a".repeat(64);
        let both = read(&[("action", "release"), ("match", "all"), ("id", &id)]).expect("is an ask");
        assert_eq!(both.ids.map(|ids| ids.len()), Some(1), "the narrower one counts");
    }

    #[test]
    fn a_filter_for_other_states_is_refused_and_never_widened() {
        let of = |action: BulkAction, states: &[SelectedState]| {
            let selection = Selection { states: states.to_vec(), ..Selection::default() };
            action.narrowed(selection).map(|selection| selection.states)
        };
        let (running, done) = (SelectedState::Is(StateKind::Running), SelectedState::Is(StateKind::Done));
        assert_eq!(of(BulkAction::Resolve, &[]), Ok(vec![HELD]));
        assert_eq!(of(BulkAction::Resolve, &[running, HELD]), Ok(vec![HELD]));
        assert_eq!(of(BulkAction::Release, &[]), Ok(vec![HELD]));
        assert_eq!(of(BulkAction::Release, &[SelectedState::Lapsed]), Ok(vec![SelectedState::Lapsed]));
        assert!(of(BulkAction::Resolve, &[running]).is_err_and(|error| error.contains("held")));
        assert!(of(BulkAction::Release, &[done]).is_err());
    }
}
