//! What must happen once: scope, operation and name, and the digest that identifies them.

use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// The most scope parts a key may have.
pub const SCOPE_PARTS_MAX: usize = 8;
/// The longest a scope part or an operation may be, in bytes.
pub const PART_BYTES_MAX: usize = 512;
/// The longest a name may be, in bytes.
pub const NAME_BYTES_MAX: usize = 1_024;

/// Joins the parts in memory. Control characters are refused in parts, so no part can hold it.
const SEPARATOR: char = '\u{1f}';

/// SHA-256 over a key's length-prefixed parts: what identifies a record in every store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordId([u8; 32]);

impl Hash for RecordId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl RecordId {
    /// The id with these bytes, as a store kept them.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest itself.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first eight hex digits: enough to follow one key through a log, too little to guess it from.
    pub fn short(&self) -> impl fmt::Display {
        let [a, b, c, d, ..] = self.0;
        ShortId(u32::from_be_bytes([a, b, c, d]))
    }
}

/// Feeds `part` so that no two lists of parts feed the same bytes.
pub(crate) fn length_prefixed(digest: &mut Sha256, part: &[u8]) {
    digest.update((part.len() as u64).to_be_bytes());
    digest.update(part);
}

struct ShortId(u32);

impl fmt::Display for ShortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordId({})", self.short())
    }
}

/// The parts of a key that is being made, twice: as its text, and as what is digested.
#[derive(Default)]
struct Parts {
    text: String,
    prefixed: Vec<u8>,
}

thread_local! {
    /// Where keys are made: a key then costs one allocation that fits. The longest key is a few kilobytes.
    static SCRATCH: Cell<Parts> = const { Cell::new(Parts { text: String::new(), prefixed: Vec::new() }) };
}

impl Parts {
    fn clear(&mut self) {
        self.text.clear();
        self.prefixed.clear();
    }

    fn push(&mut self, part: &str) {
        if !self.text.is_empty() {
            self.text.push(SEPARATOR);
        }
        self.text.push_str(part);
        // As `length_prefixed` feeds it, but all at once.
        self.prefixed.extend_from_slice(&(part.len() as u64).to_be_bytes());
        self.prefixed.extend_from_slice(part.as_bytes());
    }
}

/// What must happen once. Cheap to clone; prints as a short digest, so it is safe in logs.
///
/// ```
/// use semel::Key;
///
/// let key = Key::new("charge", "order-1042")?;
/// let tenant = Key::scoped(["acme", "eu"], "charge", "order-1042")?;
/// assert_ne!(key.id(), tenant.id());
/// assert_eq!(tenant.scope().collect::<Vec<_>>(), ["acme", "eu"]);
/// # Ok::<(), semel::Error>(())
/// ```
#[derive(Clone)]
pub struct Key {
    id: RecordId,
    text: Arc<str>,
}

impl Key {
    /// A key without a scope: one tenant, one namespace.
    pub fn new(operation: &str, name: &str) -> Result<Self> {
        Self::scoped::<[&str; 0]>([], operation, name)
    }

    /// A key in the namespace of `scope`, the path of the tenant: up to eight parts, outermost first.
    pub fn scoped<S>(scope: S, operation: &str, name: &str) -> Result<Self>
    where
        S: IntoIterator<Item: AsRef<str>>,
    {
        let mut parts = SCRATCH.take();
        parts.clear();
        for (index, part) in scope.into_iter().enumerate() {
            if index >= SCOPE_PARTS_MAX {
                return Err(Error::invalid(format!(
                    "scope has more than {SCOPE_PARTS_MAX} parts; join some of them"
                )));
            }
            parts.push(checked("scope", part.as_ref(), PART_BYTES_MAX)?);
        }
        parts.push(checked("operation", operation, PART_BYTES_MAX)?);
        parts.push(checked("name", name, NAME_BYTES_MAX)?);
        let key =
            Self { id: RecordId(Sha256::digest(&parts.prefixed).into()), text: parts.text.as_str().into() };
        SCRATCH.set(parts);
        Ok(key)
    }

    /// The digest that identifies this key's record.
    pub fn id(&self) -> RecordId {
        self.id
    }

    /// The parts of the tenant's path, outermost first.
    pub fn scope(&self) -> impl Iterator<Item = &str> {
        let (scope, _, _) = self.split();
        scope.split_terminator(SEPARATOR)
    }

    /// What kind of work this is.
    pub fn operation(&self) -> &str {
        self.split().1
    }

    /// Which one of its kind.
    pub fn name(&self) -> &str {
        self.split().2
    }

    /// Scope (with a trailing separator, or empty), operation, name.
    fn split(&self) -> (&str, &str, &str) {
        let (rest, name) = self.text.rsplit_once(SEPARATOR).unwrap_or(("", &self.text));
        match rest.rfind(SEPARATOR) {
            Some(at) => {
                let (scope, operation) = rest.split_at(at.saturating_add(SEPARATOR.len_utf8()));
                (scope, operation, name)
            }
            None => ("", rest, name),
        }
    }

    /// The parts as one text, in the form that [`from_text`](Self::from_text) reads.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A key from [`text`](Self::text), checked like any other: what a store hands back is untrusted.
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        let malformed = || Error::invalid("a key needs an operation and a name");
        let (rest, name) = text.rsplit_once(SEPARATOR).ok_or_else(malformed)?;
        match rest.rsplit_once(SEPARATOR) {
            Some((scope, operation)) => Self::scoped(scope.split(SEPARATOR), operation, name),
            None => Self::new(rest, name),
        }
    }
}

fn checked<'a>(field: &str, value: &'a str, bytes_max: usize) -> Result<&'a str> {
    let value = value.trim();
    if value.is_empty() {
        return Err(Error::invalid(format!("{field} is empty; give it a value, or leave the part out")));
    }
    if value.len() > bytes_max {
        return Err(Error::invalid(format!(
            "{field} is {} bytes long; the most is {bytes_max}, so use a digest of it",
            value.len()
        )));
    }
    // Most parts are printable ASCII, which takes one look a byte; without a way out of the loop, many at a time.
    let is_plain = value.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    if !is_plain && value.chars().any(char::is_control) {
        return Err(Error::invalid(format!("{field} holds a control character; encode or remove it")));
    }
    Ok(value)
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.text == other.text
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.id.short())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_kept_whole_and_trimmed() {
        let key = Key::scoped([" acme ", "eu"], " charge", "order 7\n").unwrap();
        assert_eq!(key.scope().collect::<Vec<_>>(), ["acme", "eu"]);
        assert_eq!((key.operation(), key.name()), ("charge", "order 7"));
        let bare = Key::new("charge", "order 7").unwrap();
        assert_eq!(bare.scope().count(), 0);
        assert_eq!((bare.operation(), bare.name()), ("charge", "order 7"));
    }

    #[test]
    fn where_one_part_ends_matters() {
        let id = |scope: &[&str], operation, name| Key::scoped(scope, operation, name).unwrap().id();
        assert_ne!(id(&["ab", "c"], "o", "n"), id(&["a", "bc"], "o", "n"));
        assert_ne!(id(&[], "ab", "c"), id(&[], "a", "bc"));
        assert_ne!(id(&["a"], "b", "c"), id(&["a", "b"], "c", "d"));
        assert_eq!(id(&["a"], "b", "c"), id(&[" a "], "b ", "\tc"));
    }

    #[test]
    fn the_digest_is_sha256_over_length_prefixed_parts() {
        let mut digest = Sha256::new();
        for part in ["t", "op", "n"] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        let expected: [u8; 32] = digest.finalize().into();
        assert_eq!(Key::scoped(["t"], "op", "n").unwrap().id().as_bytes(), &expected);
    }

    #[test]
    fn what_is_refused_is_named() {
        let name_of = |result: Result<Key>| result.unwrap_err().to_string();
        assert!(name_of(Key::new("  ", "n")).starts_with("operation is empty"));
        assert!(name_of(Key::new("o", "")).starts_with("name is empty"));
        assert!(name_of(Key::scoped([""], "o", "n")).starts_with("scope is empty"));
        assert!(name_of(Key::new("o", "a\u{0}b")).starts_with("name holds a control"));
        assert!(name_of(Key::new("o\u{85}p", "n")).starts_with("operation holds a control"));
        assert!(name_of(Key::new(&"o".repeat(513), "n")).starts_with("operation is 513 bytes"));
        assert!(name_of(Key::new("o", &"n".repeat(1_025))).starts_with("name is 1025 bytes"));
        assert!(name_of(Key::scoped(["s"; 9], "o", "n")).starts_with("scope has more than 8"));
        let longest = Key::scoped(vec!["s".repeat(512); 8], &"o".repeat(512), &"n".repeat(1_024));
        assert!(longest.is_ok());
    }

    #[test]
    fn text_round_trips_and_is_checked_again() {
        for key in [Key::new("o", "n").unwrap(), Key::scoped(["a", "b"], "o", "n").unwrap()] {
            assert_eq!(Key::from_text(key.text()).unwrap(), key);
        }
        assert!(Key::from_text("only-one-part").is_err());
        assert!(Key::from_text("\u{1f}o\u{1f}n").is_err());
    }

    #[test]
    fn debug_output_never_shows_the_name() {
        let key = Key::new("charge", "card-4242").unwrap();
        assert!(!format!("{key:?}").contains("4242"));
        assert_eq!(key.id().to_string().len(), 64);
        assert!(key.id().to_string().starts_with(&key.id().short().to_string()));
    }
}
