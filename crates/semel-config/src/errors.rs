//! What is wrong with a file, all of it at once, each with its place.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// Where in a text, in bytes.
pub type Span = Range<usize>;

/// Everything that is wrong, in the order of the file. Shown as a line each: `semel.toml:12:9: …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    name: String,
    faults: Vec<Fault>,
}

/// One thing that is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    place: Place,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Counted from 1, in lines and characters.
    At { line: usize, column: usize },
    /// An option of the command line, by its name.
    Option(&'static str),
    /// Something that is not there.
    Nowhere,
}

impl Errors {
    /// One error that is about the file as a whole.
    pub fn whole(name: &str, message: String) -> Self {
        Self { name: name.to_owned(), faults: vec![Fault { place: Place::Nowhere, message }] }
    }

    /// Each of them.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl Fault {
    /// The line, counted from 1; `None` for what is missing, or was not written in the file.
    pub fn line(&self) -> Option<usize> {
        match self.place {
            Place::At { line, .. } => Some(line),
            Place::Option(_) | Place::Nowhere => None,
        }
    }

    /// What is wrong, and what to do.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Fault { place, message }) in self.faults.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            match place {
                Place::At { line, column } => write!(f, "{}:{line}:{column}: {message}", self.name)?,
                Place::Option(option) => write!(f, "{option}: {message}")?,
                Place::Nowhere => write!(f, "{}: {message}", self.name)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// Where faults are gathered while a text is read.
#[derive(Debug)]
pub struct ErrorList<'t> {
    text: &'t str,
    found: RefCell<Vec<Fault>>,
}

impl<'t> ErrorList<'t> {
    /// None so far, in this text.
    pub fn of(text: &'t str) -> Self {
        Self { text, found: RefCell::default() }
    }

    /// Something in the text is wrong.
    pub fn at(&self, span: &Span, message: impl Into<String>) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count().saturating_add(1);
        let column = before.rsplit('\n').next().unwrap_or("").chars().count().saturating_add(1);
        self.push(Place::At { line, column }, message.into());
    }

    /// An option of the command line is wrong.
    pub fn option(&self, option: &'static str, message: impl Into<String>) {
        self.push(Place::Option(option), message.into());
    }

    /// Something is missing.
    pub fn missing(&self, message: impl Into<String>) {
        self.push(Place::Nowhere, message.into());
    }

    fn push(&self, place: Place, message: String) {
        self.found.borrow_mut().push(Fault { place, message });
    }

    /// The value, if nothing was wrong.
    pub fn judged<T>(self, name: &str, value: Option<T>) -> Result<T, Errors> {
        let mut faults = self.found.into_inner();
        faults.sort_by_key(|fault| fault.place);
        match value {
            Some(value) if faults.is_empty() => Ok(value),
            _ => Err(Errors { name: name.to_owned(), faults }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_told_with_its_place_in_the_order_of_the_file() {
        let faults = ErrorList::of("a = 1\nzürich = 2\n");
        faults.missing("c is missing");
        faults.option("--listen", "is no address");
        faults.at(&(16..17), "is 2");
        faults.at(&(0..1), "is no setting");
        let errors = faults.judged("f.toml", Some(())).unwrap_err();
        assert_eq!(
            errors.to_string(),
            "f.toml:1:1: is no setting\nf.toml:2:10: is 2\n--listen: is no address\nf.toml: c is missing"
        );
        assert_eq!(
            errors.faults().iter().map(Fault::line).collect::<Vec<_>>(),
            [Some(1), Some(2), None, None]
        );
        assert_eq!(errors.faults()[0].message(), "is no setting");
    }

    #[test]
    fn nothing_wrong_is_no_error() {
        assert_eq!(ErrorList::of("").judged("f", Some(7)), Ok(7));
    }
}
