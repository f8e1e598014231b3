//! A caller's name, as it stands in the scope of a key.

use std::fmt::{self, Write};

use http::header::AUTHORIZATION;
use semel::PART_BYTES_MAX;
use sha2::{Digest, Sha256};

/// A caller: one part of a key's scope. It begins with the kind of source that it is known by, so that no two
/// sources ever mean two callers by one name. Never prints who it is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    text: String,
}

impl Caller {
    /// The part of the scope.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A caller whom a source knows by a name. Nobody has an empty one. A name that could not stand in a scope as it is
    /// is digested; `#` tells it from one that looks like a digest.
    pub(super) fn named(source: &str, before: usize, name: &str) -> Option<Self> {
        if name.trim().is_empty() {
            return None;
        }
        let mut text = String::with_capacity(source.len().saturating_add(name.len()).saturating_add(1));
        text.push_str(source);
        if before > 0 {
            let _ = write!(text, ".{}", before.saturating_add(1));
        }
        let fits = name.len() <= PART_BYTES_MAX.saturating_sub(text.len()).saturating_sub(1);
        if fits && name == name.trim() && !name.chars().any(char::is_control) {
            text.push(':');
            text.push_str(name);
        } else {
            text.push('#');
            push_hex(&mut text, Sha256::digest(name).as_slice());
        }
        Some(Self { text })
    }

    /// A caller by the digest of a header's value.
    pub(super) fn digested_header(name: &str, digest: &[u8]) -> Self {
        let mut text = String::with_capacity(128);
        if name == AUTHORIZATION.as_str() {
            text.push_str("auth:");
        } else if name.len() <= PART_BYTES_MAX / 2 {
            // The digest has one length, so no name of a header can pass for another's and its digest.
            text.push_str("header:");
            text.push_str(name);
            text.push(':');
        } else {
            text.push_str("header#");
            push_hex(&mut text, Sha256::digest(name).as_slice());
            text.push(':');
        }
        push_hex(&mut text, digest);
        Self { text }
    }

    /// A caller by the digest of a cookie's value.
    pub(super) fn digested_cookie(name: &str, digest: &[u8]) -> Self {
        let mut text = String::with_capacity(128);
        if name.len() <= PART_BYTES_MAX / 2 {
            text.push_str("cookie:");
            text.push_str(name);
        } else {
            text.push_str("cookie#");
            push_hex(&mut text, Sha256::digest(name).as_slice());
        }
        text.push(':');
        push_hex(&mut text, digest);
        Self { text }
    }
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for digit in [byte >> 4, byte & 0xf] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.text.split([':', '#']).next().unwrap_or_default();
        write!(f, "Caller({source})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_becomes_a_part_of_a_scope() {
        for name in [
            "alice",
            "a:b",
            "  alice",
            "a\u{1f}b",
            "é",
            &"x".repeat(10_000),
            "a\nb",
            "\u{85}a",
            &"é".repeat(300),
        ] {
            let caller = Caller::named("function", 1, name).unwrap();
            let key = semel::Key::scoped([caller.as_str()], "http", "k").unwrap();
            assert_eq!(key.scope().collect::<Vec<_>>(), [caller.as_str()], "{name:?}");
        }
        for name in ["", " ", "\u{a0}\n"] {
            assert_eq!(Caller::named("function", 0, name), None);
        }
    }

    #[test]
    fn names_that_differ_are_callers_that_differ() {
        let hex = Caller::named("f", 0, " alice").unwrap();
        let digest = hex.as_str().strip_prefix("f#").unwrap().to_owned();
        let mut seen = std::collections::HashSet::new();
        for (source, before, name) in [
            ("f", 0, "alice"),
            ("f", 0, " alice"),
            ("f", 0, "alice "),
            ("f", 0, digest.as_str()),
            ("f", 1, "alice"),
            ("f", 2, "alice"),
            ("g", 0, "alice"),
            ("f", 0, "2:alice"),
        ] {
            assert!(seen.insert(Caller::named(source, before, name).unwrap()), "{source} {before} {name}");
        }
    }

    #[test]
    fn a_caller_never_prints_who_it_is() {
        let caller = Caller::named("function", 0, "alice@example.org").unwrap();
        assert_eq!(format!("{caller:?}"), "Caller(function)");
    }
}
