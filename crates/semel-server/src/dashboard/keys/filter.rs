//! What was searched for.

use std::time::Duration;

use semel::RecordId;
use semel::clock::Timestamp;
use semel::record::StateWord;
use semel::store::Filter;

use crate::access::Caller;
use crate::dashboard::query::address;
use semel_ops::format::{scope, span};
use semel_ops::lookup::IdPrefix;

/// What was searched for, as it was typed.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) scope: String,
    pub(super) operation: String,
    pub(super) name: String,
    pub(super) states: Vec<StateWord>,
    pub(super) older_than: String,
    pub(super) after: String,
}

/// What it means.
pub(super) struct Meant {
    pub(super) filter: Filter,
    pub(super) older_than: Option<Duration>,
    pub(super) after: Option<RecordId>,
}

impl Wanted {
    pub(super) fn read(query: Vec<(String, String)>) -> Self {
        let mut wanted = Self::default();
        for (name, value) in query {
            let value = value.trim().to_owned();
            match name.as_str() {
                "scope" => wanted.scope = value,
                "operation" => wanted.operation = value,
                "name" => wanted.name = value,
                "older_than" => wanted.older_than = value,
                "after" => wanted.after = value,
                "state" => {
                    wanted.states.extend(StateWord::ALL.into_iter().find(|word| word.as_str() == value));
                }
                // Links from elsewhere may carry more.
                _ => {}
            }
        }
        wanted.states.dedup();
        wanted
    }

    /// What it means for this caller, or what is wrong with it.
    pub(super) fn meant(&self, caller: &Caller) -> Result<Meant, String> {
        let typed = if self.scope.is_empty() { Vec::new() } else { scope::parse(&self.scope)? };
        let typed: Vec<Box<str>> = typed.iter().map(|part| part.trim().into()).collect();
        let older_than = match self.older_than.as_str() {
            "" => None,
            text => Some(span::parse(text)?),
        };
        let after = match self.after.as_str() {
            "" => None,
            text => Some(text.parse::<IdPrefix>()?.last()),
        };
        let given = |text: &str| (!text.is_empty()).then(|| text.into());
        let filter = Filter {
            scope: within(caller.scope(), typed)?,
            operation: given(&self.operation),
            name: given(&self.name),
            states: self.states.clone(),
            first_seen_before: None,
        };
        Ok(Meant { filter, older_than, after })
    }

    /// Whether nothing but a key was asked for, so that finding it is all that is left to do.
    pub(super) fn is_a_key_alone(&self) -> bool {
        self.states.is_empty() && self.older_than.is_empty() && self.after.is_empty()
    }

    /// The address of the page behind this record.
    pub(super) fn after(&self, after: Option<RecordId>) -> String {
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        let fixed = [
            ("scope", self.scope.as_str()),
            ("operation", &self.operation),
            ("name", &self.name),
            ("older_than", &self.older_than),
        ];
        let states = self.states.iter().map(|word| ("state", word.as_str()));
        address("/keys", fixed.into_iter().chain(states).chain([("after", after.as_str())]))
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

/// The moment so long before `now`.
pub(super) fn earlier(now: Timestamp, span: Duration) -> Timestamp {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &[&str]) -> Vec<Box<str>> {
        text.iter().map(|part| (*part).into()).collect()
    }

    #[test]
    fn nobody_searches_outside_their_scope() {
        let own = parts(&["acme", "eu"]);
        assert_eq!(within(&own, parts(&[])), Ok(own.clone()));
        assert_eq!(within(&own, parts(&["acme"])), Ok(own.clone()));
        assert_eq!(within(&own, parts(&["acme", "eu", "billing"])), Ok(parts(&["acme", "eu", "billing"])));
        for foreign in [parts(&["zeta"]), parts(&["acme", "us"]), parts(&["acme", "eux", "a"])] {
            assert!(within(&own, foreign).is_err());
        }
        assert_eq!(within(&[], parts(&["zeta"])), Ok(parts(&["zeta"])));
    }
}
