//! Which records are meant, by conditions: the same options for every command that takes many.

use std::time::Duration;

use semel_ops::format::scope;
use semel_ops::lookup::{SelectedState, Selection};

use crate::args::Scope;
use crate::terminal::span;

/// Conditions on records. A record must meet every one that is given.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Which records")]
pub(super) struct FilterArgs {
    /// Only keys whose scope begins with these parts; `\/` for a slash inside a part
    #[arg(long, value_name = "A/B", value_parser = scope::parse)]
    pub(super) scope: Option<Scope>,
    /// Only this operation
    #[arg(long, value_name = "WORD")]
    pub(super) operation: Option<String>,
    /// Only this name
    #[arg(long, value_name = "TEXT")]
    pub(super) name: Option<String>,
    /// Only names that begin so
    #[arg(long, value_name = "TEXT")]
    name_prefix: Option<String>,
    /// Only labels that begin so, such as 'POST /charges'
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Only what is held or was released for a reason that contains this
    #[arg(long, value_name = "TEXT")]
    reason_contains: Option<String>,
    /// Only these states: running, lapsed, done, released, held
    #[arg(long, value_name = "STATE,…", value_delimiter = ',')]
    state: Vec<SelectedState>,
    /// Only what was first seen longer ago than this: 10m, 2h, 3d
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    older_than: Option<Duration>,
}

impl FilterArgs {
    pub(super) fn selection(&self) -> Selection {
        let text = |text: &Option<String>| text.as_deref().map(Into::into);
        Selection {
            scope: self.scope.clone().unwrap_or_default(),
            operation: text(&self.operation),
            name: text(&self.name),
            name_prefix: text(&self.name_prefix),
            label_prefix: text(&self.label),
            states: self.state.clone(),
            older_than: self.older_than,
            reason: text(&self.reason_contains),
        }
    }

    /// Whether scope, operation and name name one key, and there is no other condition.
    pub(super) fn names_one_key(&self) -> bool {
        let exact = Selection {
            scope: self.scope.clone().unwrap_or_default(),
            operation: self.operation.as_deref().map(Into::into),
            name: self.name.as_deref().map(Into::into),
            ..Selection::default()
        };
        self.operation.is_some() && self.name.is_some() && self.selection() == exact
    }
}
