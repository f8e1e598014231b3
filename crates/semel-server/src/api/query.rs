//! What is asked in a URL: strictly, like a body.

use std::fmt::Display;
use std::time::Duration;

use axum::extract::{FromRequestParts, Query as Pairs};
use http::request::Parts;
use semel::RecordId;

use super::problem::Problem;
use super::wire::{OutcomeAs, WAIT_MAX};
use crate::access::Caller;
use semel_ops::format::span;
use semel_ops::record_json::{Content, read_hex};

/// The pairs of a query that nobody has asked for yet.
pub(super) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Pairs::<Vec<(String, String)>>::from_request_parts(parts, state).await {
            Ok(Pairs(pairs)) => Ok(Self(pairs)),
            Err(error) => Err(Problem::invalid(format!("the query cannot be read: {error}"))),
        }
    }
}

impl Query {
    /// Every value of this name, in their order.
    pub(super) fn all(&mut self, name: &str) -> Vec<String> {
        let taken = self.0.extract_if(.., |(other, _)| other == name);
        taken.map(|(_, value)| value).collect()
    }

    /// The value of this name, which may be there once.
    pub(super) fn one(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let mut values = self.all(name);
        let value = values.pop();
        if values.is_empty() { Ok(value) } else { Err(Problem::invalid(format!("{name} is there twice"))) }
    }

    /// The value of this name, which must be there.
    pub(super) fn needed(&mut self, name: &str) -> Result<String, Problem> {
        self.one(name)?.ok_or_else(|| Problem::invalid(format!("{name} is missing; give it a value")))
    }

    /// The value of this name, read.
    pub(super) fn read<T, E: Display>(
        &mut self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Problem> {
        let value = self.one(name)?.map(|text| read(&text));
        value.transpose().map_err(|error| Problem::invalid(format!("{name}: {error}")))
    }

    /// How long to wait for a running record.
    pub(super) fn wait(&mut self) -> Result<Duration, Problem> {
        let wait = self.read("wait", span::parse)?.unwrap_or_default();
        if wait > WAIT_MAX {
            return Err(Problem::invalid("wait is over 60s; ask again instead of waiting longer"));
        }
        Ok(wait)
    }

    /// How the bytes of an outcome are shown to this caller.
    pub(super) fn content(&mut self, caller: &Caller) -> Result<Content, Problem> {
        let wanted = self.read("outcome_as", |word| match word {
            "json" => Ok(OutcomeAs::Json),
            "base64" => Ok(OutcomeAs::Base64),
            _ => Err("write json or base64"),
        })?;
        Ok(OutcomeAs::content(wanted, caller))
    }

    /// How many are wanted on a page, and behind which.
    pub(super) fn page(&mut self) -> Result<Page, Problem> {
        let limit = self.read("limit", |text| match text.parse() {
            Ok(limit @ 1..=Page::LIMIT_MAX) => Ok(limit),
            _ => Err(format!("write a number from 1 to {}", Page::LIMIT_MAX)),
        })?;
        Ok(Page { limit: limit.unwrap_or(Page::LIMIT), after: self.read("after", id)? })
    }

    /// Refuses whatever nobody asked for, by name: a misspelt filter must not show everything.
    pub(super) fn end(self) -> Result<(), Problem> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::invalid(format!(
                "the query has an unknown member `{name}`; /docs lists those it may have"
            ))),
        }
    }
}

/// Which page of a list.
pub(super) struct Page {
    pub(super) limit: usize,
    pub(super) after: Option<RecordId>,
}

impl Page {
    const LIMIT: usize = 100;
    const LIMIT_MAX: usize = 1_000;
}

/// The id that these digits are.
pub(super) fn id(digits: &str) -> Result<RecordId, &'static str> {
    read_hex(digits).map(RecordId::from_bytes).ok_or("an id is 64 hex digits")
}

/// The scope that a list looks into: what was asked for, within what the caller reaches.
pub(super) fn within(caller: &Caller, asked: Vec<Box<str>>) -> Result<Vec<Box<str>>, Problem> {
    if asked.starts_with(caller.scope()) {
        Ok(asked)
    } else if caller.scope().starts_with(&asked) {
        Ok(caller.scope().to_vec())
    } else {
        Err(Problem::forbidden("the scope is outside this token's scope"))
    }
}
