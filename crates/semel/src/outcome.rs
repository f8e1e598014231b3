//! What a run produced: kind, bytes, references and details, replayed exactly as stored.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

/// How a run ended, in one word.
#[derive(Clone, PartialEq, Eq)]
pub enum OutcomeKind {
    /// The work did what it was asked to.
    Success,
    /// The work failed, and the failure is what every retry gets.
    Failure,
    /// A word of the application's own, such as `skipped`.
    Other(Box<str>),
}

impl OutcomeKind {
    /// The word that stands for this kind wherever it is shown or stored.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Other(word) => word,
        }
    }

    /// The kind that `word` stands for.
    pub fn from_word(word: &str) -> Self {
        match word {
            "success" => Self::Success,
            "failure" => Self::Failure,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Debug for OutcomeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the run produced. Two outcomes are the same only if every part is.
#[derive(Clone, PartialEq, Eq)]
pub struct Outcome {
    kind: OutcomeKind,
    bytes: Bytes,
    notes: Option<Arc<Notes>>,
}

/// What few outcomes have; kept apart so that the many stay small.
#[derive(Clone, Default, PartialEq, Eq)]
struct Notes {
    references: Vec<Reference>,
    details: Option<Box<str>>,
}

/// Something that the run created or changed: a kind and an id, such as `charge ch_1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// What it is.
    pub kind: Box<str>,
    /// Which one.
    pub id: Box<str>,
}

impl Outcome {
    /// An outcome of any kind. The bytes are shared with the record and never copied; a slice of a larger buffer keeps
    /// that buffer for as long as the record is in memory.
    pub fn new(kind: OutcomeKind, bytes: impl Into<Bytes>) -> Self {
        Self { kind, bytes: bytes.into(), notes: None }
    }

    /// The work did what it was asked to; every retry gets these bytes.
    pub fn success(bytes: impl Into<Bytes>) -> Self {
        Self::new(OutcomeKind::Success, bytes)
    }

    /// The work failed for good; every retry gets these bytes.
    pub fn failure(bytes: impl Into<Bytes>) -> Self {
        Self::new(OutcomeKind::Failure, bytes)
    }

    /// The same outcome with a reference to something that the run created: `reference("charge", "ch_1")`. An outcome
    /// may have several, in the order in which they were added.
    #[must_use]
    pub fn reference(mut self, kind: impl Into<Box<str>>, id: impl Into<Box<str>>) -> Self {
        self.notes_mut().references.push(Reference { kind: kind.into(), id: id.into() });
        self
    }

    /// The same outcome with details for people and tools.
    #[must_use]
    pub fn details(mut self, details: &Value) -> Self {
        self.notes_mut().details = Some(details.to_string().into());
        self
    }

    /// How the run ended.
    pub fn kind(&self) -> &OutcomeKind {
        &self.kind
    }

    /// The bytes, exactly as the run gave them.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What the run created, in the order in which it was said.
    pub fn references(&self) -> &[Reference] {
        self.notes.as_ref().map_or(&[], |notes| &notes.references)
    }

    /// The details as JSON text, if there are any.
    pub fn details_json(&self) -> Option<&str> {
        self.notes.as_ref()?.details.as_deref()
    }

    /// The same outcome with details that are JSON text already, as a store kept them.
    #[must_use]
    pub fn details_text(mut self, text: &str) -> Self {
        self.notes_mut().details = Some(text.into());
        self
    }

    /// What the outcome takes in memory, beside the value itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        let references = self.references().iter().map(|reference| {
            size_of::<Reference>().saturating_add(reference.kind.len()).saturating_add(reference.id.len())
        });
        let rest = [self.bytes.len(), self.kind.as_str().len(), self.details_json().map_or(0, str::len)];
        references.chain(rest).fold(0, usize::saturating_add)
    }

    fn notes_mut(&mut self) -> &mut Notes {
        Arc::make_mut(self.notes.get_or_insert_default())
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outcome({:?}, {} bytes", self.kind, self.bytes.len())?;
        if let Some(details) = self.details_json() {
            write!(f, ", details of {} bytes", details.len())?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_part_counts_for_sameness() {
        let base = || Outcome::success("paid");
        assert_eq!(base(), base());
        assert_ne!(base(), Outcome::failure("paid"));
        assert_ne!(base(), Outcome::success("paid!"));
        assert_ne!(base(), base().reference("charge", "c"));
        assert_ne!(base().reference("charge", "c"), base().reference("order", "c"));
        assert_ne!(
            base().reference("a", "1").reference("b", "2"),
            base().reference("b", "2").reference("a", "1")
        );
        assert_ne!(base().details(&json!({"a": 1})), base().details(&json!({"a": 2})));
    }

    #[test]
    fn debug_output_shows_lengths_never_contents() {
        let shown = format!("{:?}", Outcome::success("secret").details(&json!("hidden")));
        assert_eq!(shown, "Outcome(success, 6 bytes, details of 8 bytes)");
    }

    #[test]
    fn a_kind_is_the_word_it_stands_for() {
        for word in ["success", "failure", "skipped"] {
            assert_eq!(OutcomeKind::from_word(word).as_str(), word);
        }
        assert_ne!(OutcomeKind::from_word("success"), OutcomeKind::Other("success".into()));
    }
}
