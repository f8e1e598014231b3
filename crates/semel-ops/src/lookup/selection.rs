//! Which records are meant, in the words that the command line, the API and the dashboard share.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::{Record, State, StateKind};
use semel::store::{Filter, Store};
use semel::{RecordId, Result};

use super::walk::{self, PAGE_RECORDS_MAX, Page, Walk};
use crate::format::{scope, span};

/// Which records are meant. A record must meet every condition that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The scope begins with these parts.
    pub scope: Vec<Box<str>>,
    /// The operation is this one.
    pub operation: Option<Box<str>>,
    /// The name is this one.
    pub name: Option<Box<str>>,
    /// The name begins so.
    pub name_prefix: Option<Box<str>>,
    /// The label begins so: `POST /charges`.
    pub label_prefix: Option<Box<str>>,
    /// In one of these states; in any if there is none.
    pub states: Vec<SelectedState>,
    /// First seen longer ago than this.
    pub older_than: Option<Duration>,
    /// Held or released for a reason that contains this.
    pub reason: Option<Box<str>>,
}

/// A state that records are selected by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectedState {
    /// The state of the record. A run that lapsed under `hold` is held.
    Is(StateKind),
    /// Running, not renewed in time, and not held: the next claim runs it again.
    Lapsed,
}

impl SelectedState {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Is(StateKind::Running),
        Self::Lapsed,
        Self::Is(StateKind::Done),
        Self::Is(StateKind::Released),
        Self::Is(StateKind::Held),
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Is(kind) => kind.as_str(),
            Self::Lapsed => "lapsed",
        }
    }

    fn kind(self) -> StateKind {
        match self {
            Self::Is(kind) => kind,
            Self::Lapsed => StateKind::Running,
        }
    }

    fn matches(self, record: &Record, now: Timestamp) -> bool {
        record.kind_at(now) == self.kind()
            && match self {
                Self::Is(_) => true,
                Self::Lapsed => {
                    matches!(&record.state, State::Running(running) if !running.lease_is_good(now))
                }
            }
    }
}

impl FromStr for SelectedState {
    type Err = String;

    fn from_str(word: &str) -> std::result::Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == word)
            .ok_or_else(|| format!("`{word}` is not a state; use {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

/// What a selection did with a word that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is one of a selection's words.
    Yes,
    /// It is not: the caller must know it, or refuse it.
    No,
}

impl Selection {
    /// The words that a selection knows, as queries write them; options of the command line have `-` for `_`.
    pub const WORDS: [&str; 8] =
        ["scope", "operation", "name", "name_prefix", "label", "state", "older_than", "reason"];

    /// Takes one word with its value, as queries and forms have them. `scope` is one part and `state` is one state; both
    /// may be given several times. An empty value is a field that was left empty. The error says what is wrong with the value.
    pub fn take(&mut self, word: &str, value: &str) -> std::result::Result<Taken, String> {
        let value = value.trim();
        let text = (!value.is_empty()).then(|| Box::from(value));
        match word {
            "scope" => self.scope.extend(text),
            "operation" => set(&mut self.operation, word, text)?,
            "name" => set(&mut self.name, word, text)?,
            "name_prefix" => set(&mut self.name_prefix, word, text)?,
            "label" => set(&mut self.label_prefix, word, text)?,
            "reason" => set(&mut self.reason, word, text)?,
            "older_than" => {
                let older_than = text.map(|text| span::parse(&text)).transpose();
                set(&mut self.older_than, word, older_than.map_err(|error| format!("{word}: {error}"))?)?;
            }
            "state" => {
                let state = text.map(|text| text.parse::<SelectedState>()).transpose();
                self.states.extend(state.map_err(|error| format!("{word}: {error}"))?);
            }
            _ => return Ok(Taken::No),
        }
        Ok(Taken::Yes)
    }

    /// The words and values that [`take`](Self::take) reads back as this selection: for links and for remote stores.
    pub fn words(&self) -> Vec<(&'static str, String)> {
        let scope = self.scope.iter().map(|part| ("scope", part.to_string()));
        let texts = [
            ("operation", &self.operation),
            ("name", &self.name),
            ("name_prefix", &self.name_prefix),
            ("label", &self.label_prefix),
            ("reason", &self.reason),
        ];
        let texts = texts.into_iter().filter_map(|(word, text)| Some((word, text.as_ref()?.to_string())));
        let states = self.states.iter().map(|state| ("state", state.as_str().to_owned()));
        let older_than = self.older_than.map(|age| ("older_than", span::written(age)));
        scope.chain(texts).chain(states).chain(older_than).collect()
    }

    /// Whether it selects every record.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Selects only what is held, if no state is given: what operators act on, unless they name another state.
    #[must_use]
    pub fn held_by_default(mut self) -> Self {
        if self.states.is_empty() {
            self.states.push(SelectedState::Is(StateKind::Held));
        }
        self
    }

    /// The part of it that a store applies itself, at `now`.
    pub fn filter(&self, now: Timestamp) -> Filter {
        let mut states: Vec<StateKind> = Vec::new();
        for state in &self.states {
            if !states.contains(&state.kind()) {
                states.push(state.kind());
            }
        }
        Filter {
            scope: self.scope.clone(),
            operation: self.operation.clone(),
            name: self.name.clone(),
            states,
            first_seen_before: self.older_than.map(|age| before(now, age)),
        }
    }

    /// Whether the record is meant, as it is at `now`.
    pub fn matches(&self, record: &Record, now: Timestamp) -> bool {
        self.filter(now).matches(record, now) && self.matches_the_rest(record, now)
    }

    /// Whether a record that a store's filter let through is meant.
    fn matches_the_rest(&self, record: &Record, now: Timestamp) -> bool {
        let begins = |text: &str, prefix: &Option<Box<str>>| {
            prefix.as_deref().is_none_or(|prefix| text.starts_with(prefix))
        };
        begins(record.key.name(), &self.name_prefix)
            && begins(record.label.as_deref().unwrap_or_default(), &self.label_prefix)
            && (self.states.is_empty() || self.states.iter().any(|state| state.matches(record, now)))
            && self.reason.as_deref().is_none_or(|part| reason(record).is_some_and(|all| all.contains(part)))
    }

    /// Whether a store's filter says all of it.
    fn is_only_a_filter(&self) -> bool {
        self.name_prefix.is_none()
            && self.label_prefix.is_none()
            && self.reason.is_none()
            && !self.states.contains(&SelectedState::Lapsed)
    }

    /// Through all records that are meant, by id, from behind `after` on. Ages are judged by the store's now at the start.
    pub async fn walk(self, store: &dyn Store, after: Option<RecordId>) -> Result<SelectionWalk<'_>> {
        let now = match self.older_than {
            Some(_) => walk::now(store).await?,
            None => Timestamp::default(),
        };
        Ok(SelectionWalk { walk: Walk::new(store, self.filter(now), after), selection: self })
    }

    /// How many records are meant: reads all that the store's filter lets through.
    pub async fn count(&self, store: &dyn Store) -> Result<u64> {
        let mut walk = self.clone().walk(store, None).await?;
        let mut count = 0_u64;
        while let Some(page) = walk.next().await? {
            count = count.saturating_add(page.records.len() as u64);
        }
        Ok(count)
    }
}

/// The conditions in words, for people: `scope acme/eu, state held, label POST /charges…`.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut conditions = Vec::new();
        if !self.scope.is_empty() {
            conditions.push(format!("scope {}", scope::shown(self.scope.iter().map(|part| &**part))));
        }
        if !self.states.is_empty() {
            let states: Vec<_> = self.states.iter().map(|state| state.as_str()).collect();
            conditions.push(format!("state {}", states.join(" or ")));
        }
        for (what, text, end) in [
            ("operation", &self.operation, ""),
            ("name", &self.name, ""),
            ("name", &self.name_prefix, "…"),
            ("label", &self.label_prefix, "…"),
        ] {
            conditions.extend(text.as_ref().map(|text| format!("{what} {text}{end}")));
        }
        conditions.extend(self.reason.as_ref().map(|reason| format!("reason …{reason}…")));
        conditions.extend(self.older_than.map(|age| format!("older than {}", span::shown(age))));
        f.write_str(&if conditions.is_empty() { "all records".to_owned() } else { conditions.join(", ") })
    }
}

fn set<T>(field: &mut Option<T>, word: &str, value: Option<T>) -> std::result::Result<(), String> {
    if field.is_some() && value.is_some() {
        return Err(format!("{word} is given twice; give it once"));
    }
    *field = field.take().or(value);
    Ok(())
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    let micros = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}

/// Why a record is held or was released.
fn reason(record: &Record) -> Option<&str> {
    match &record.state {
        State::Held(held) => Some(held.reason.as_str()),
        State::Released(released) => Some(&released.reason),
        State::Running(_) | State::Done(_) => None,
    }
}

/// A walk through the records that are meant.
pub struct SelectionWalk<'a> {
    walk: Walk<'a>,
    selection: Selection,
}

impl SelectionWalk<'_> {
    /// Where the walk is; `None` at its end.
    pub fn after(&self) -> Option<RecordId> {
        self.walk.after()
    }

    /// Whether there are no more.
    pub fn is_at_end(&self) -> bool {
        self.walk.is_at_end()
    }

    /// The next page, which may be empty; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Page>> {
        self.next_of(PAGE_RECORDS_MAX).await
    }

    /// The next page with at most so many records, which may be empty; `None` at the end.
    pub async fn next_of(&mut self, limit: usize) -> Result<Option<Page>> {
        // Where the store cannot apply every condition, few of a page may be meant: it is read whole, and what does not fit
        // is read again by the next call.
        let asked = if self.selection.is_only_a_filter() { limit } else { PAGE_RECORDS_MAX };
        let Some(mut page) = self.walk.next_of(asked).await? else { return Ok(None) };
        let now = page.now;
        page.records.retain(|record| self.selection.matches_the_rest(record, now));
        if page.records.len() > limit {
            page.records.truncate(limit);
            if let Some(last) = page.records.last() {
                let last = last.key.id();
                self.walk.go_back_to(last);
                page.damaged.retain(|(id, _)| *id <= last);
            }
        }
        Ok(Some(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_a_state_is_refused_with_those_that_are() {
        assert_eq!("lapsed".parse::<SelectedState>().map(SelectedState::as_str), Ok("lapsed"));
        let error = "stuck".parse::<SelectedState>().expect_err("is none");
        assert!(error.contains("running, lapsed, done, released, held"), "{error}");
    }
}
