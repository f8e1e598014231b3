//! A table of the file: fields are asked for by name, and what nobody asked for is wrong.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::errors::{ErrorList, Span};
use super::layout::{did_you_mean, home};
use super::value::{Read, Value, Wrong, kind};

/// A table of the file, which may not be there.
#[derive(Debug)]
pub struct Table<'t> {
    fields: Option<&'t DeTable<'t>>,
    /// Where it begins, for what is missing in it.
    span: Span,
    asked: Vec<&'static str>,
    errors: &'t ErrorList<'t>,
}

impl<'t> Table<'t> {
    /// The whole file.
    pub fn root(file: &'t DeTable<'t>, errors: &'t ErrorList<'t>) -> Self {
        Self::new(Some(file), 0..0, errors)
    }

    fn new(fields: Option<&'t DeTable<'t>>, span: Span, errors: &'t ErrorList<'t>) -> Self {
        Self { fields, span, asked: Vec::new(), errors }
    }

    /// A field as it was written.
    pub fn value(&mut self, name: &'static str) -> Option<&'t Value<'t>> {
        self.asked.push(name);
        self.found(name)
    }

    fn found(&self, name: &str) -> Option<&'t Value<'t>> {
        let mut fields = self.fields?.iter();
        fields.find(|(found, _)| found.get_ref() == name).map(|(_, value)| value)
    }

    /// What a field means; `None` if it is not there or means nothing, which is then an error.
    pub fn read<T>(&mut self, name: &'static str, how: impl Fn(&Value<'_>) -> Read<T>) -> Option<T> {
        how(self.value(name)?).map_err(|wrongs| self.refuse(name, wrongs)).ok()
    }

    /// Records what is wrong with a field. Not generic: compiled once, however many types of fields there are.
    fn refuse(&self, name: &str, wrongs: Vec<Wrong>) {
        for wrong in wrongs {
            self.errors.at(&wrong.span, format!("`{name}` {}", wrong.message));
        }
    }

    /// Where errors are recorded that are not about one field.
    pub fn errors(&self) -> &'t ErrorList<'t> {
        self.errors
    }

    /// Puts what a field means into its place, which keeps its default otherwise.
    pub fn set<T>(&mut self, name: &'static str, place: &mut T, how: impl Fn(&Value<'_>) -> Read<T>) {
        if let Some(meaning) = self.read(name, how) {
            *place = meaning;
        }
    }

    /// `[name]`.
    #[must_use]
    pub fn table(&mut self, name: &'static str) -> Self {
        let Some(value) = self.value(name) else { return Self::new(None, self.span.clone(), self.errors) };
        let fields = value.get_ref().as_table();
        if fields.is_none() {
            self.errors.at(&value.span(), format!("`{name}` is {}; write a table: `[{name}]`", kind(value)));
        }
        Self::new(fields, value.span(), self.errors)
    }

    /// `[[name]]`, each of them.
    pub fn tables(&mut self, name: &'static str) -> Vec<Self> {
        let Some(value) = self.value(name) else { return Vec::new() };
        let DeValue::Array(each) = value.get_ref() else {
            self.errors
                .at(&value.span(), format!("`{name}` is {}; write `[[{name}]]` for each", kind(value)));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for value in each {
            match value.get_ref().as_table() {
                Some(fields) => tables.push(Self::new(Some(fields), value.span(), self.errors)),
                None => self.errors.at(
                    &value.span(),
                    format!("`{name}` holds {}; write `[[{name}]]` for each", kind(value)),
                ),
            }
        }
        tables
    }

    /// Whether a field was written, whatever it says.
    pub fn has(&self, name: &str) -> bool {
        self.found(name).is_some()
    }

    /// Something is wrong with a field, or with its absence.
    pub fn wrong(&self, name: &str, message: &str) {
        let span = self.found(name).map_or_else(|| self.span.clone(), Spanned::span);
        self.errors.at(&span, format!("`{name}` {message}"));
    }

    /// All that is known was asked for: every other name is wrong.
    pub fn finish(self) {
        let Some(fields) = self.fields else { return };
        for (name, _) in fields.iter().filter(|(name, _)| !self.asked.contains(&name.get_ref().as_ref())) {
            let hint = match home(name.get_ref()) {
                Some(home) => format!("; it belongs {home}"),
                None => did_you_mean(name.get_ref(), self.asked.iter().copied()),
            };
            self.errors.at(&name.span(), format!("`{}` is no setting here{hint}", name.get_ref()));
        }
    }
}
