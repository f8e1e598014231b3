//! The machine is pure: no clock, no I/O, no randomness, nothing from the layers above it.

use super::source::{Fault, Source, find_words, line_at};

/// What no rule of the machine can need.
const IMPURE: [&str; 14] = [
    "async",
    "await",
    "tokio",
    "rand",
    "tracing",
    "metrics",
    "Instant",
    "SystemTime",
    "std::fs",
    "std::net",
    "std::thread",
    "std::env",
    "crate::engine",
    "crate::store",
];

/// Nothing in `machine/` does what a pure function cannot.
pub(super) fn machine(source: &Source) -> Vec<Fault> {
    if !source.path.starts_with("crates/semel/src/machine/") {
        return Vec::new();
    }
    let found = IMPURE.into_iter().flat_map(|word| find_words(&source.code, word).map(move |at| (word, at)));
    let fault = |(word, at)| {
        let message = format!("`{word}` in the machine, which is pure: take the value as an argument");
        Fault::new("purity", line_at(&source.code, at), message).about(word)
    };
    found.map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_impure_is_found_in_the_machine_only() {
        for word in IMPURE {
            let text = format!("//! A.\nuse {word}::a;\n");
            let found = machine(&Source::new("crates/semel/src/machine/claim.rs", text.as_str()));
            assert_eq!((found.len(), found[0].line), (1, 2), "{word}");
            assert_eq!(machine(&Source::new("crates/semel/src/engine/claim.rs", text)).len(), 0, "{word}");
        }
    }

    #[test]
    fn documentation_may_speak_of_what_is_impure() {
        let source = Source::new("crates/semel/src/machine/claim.rs", "//! No async, no tokio, no rand.\n");
        assert_eq!(machine(&source).len(), 0);
    }
}
