//! The text of a configuration file.

use std::path::Path;

use toml::de::DeTable;

use crate::errors::{ErrorList, Errors};
use crate::table::Table;

/// The text of a configuration file that is TOML, and its name for errors.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
}

impl Source {
    /// No file: every setting has its default. `command` is the name that errors show instead.
    pub fn none(command: &str) -> Self {
        Self { name: command.to_owned(), text: String::new() }
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Errors> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Errors::whole(&name, format!("cannot be read: {error}; name the file with --config"))
        })?;
        Self::parse(&text, &name)
    }

    /// The text of a file. `name` is for errors.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        let (_, wrongs) = DeTable::parse_recoverable(text);
        let errors = ErrorList::of(text);
        for wrong in wrongs {
            let message = format!("is not TOML: {}", wrong.message());
            match wrong.span() {
                Some(span) => errors.at(&span, message),
                None => errors.missing(message),
            }
        }
        errors.judged(name, Some(Self { name: name.to_owned(), text: text.to_owned() }))
    }

    /// The name that errors show.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What `meaning` makes of the file; an error if it recorded any.
    pub fn judged<T>(&self, meaning: impl FnOnce(Table<'_>) -> Option<T>) -> Result<T, Errors> {
        let (file, _) = DeTable::parse_recoverable(&self.text);
        let errors = ErrorList::of(&self.text);
        let value = meaning(Table::root(file.get_ref(), &errors));
        errors.judged(&self.name, value)
    }
}
