//! What is let through, and why. An exception that lets nothing through is a fault itself.

use super::source::Fault;

/// One rule, or one word of it, that does not hold in one place.
#[derive(Debug)]
pub(super) struct Exception {
    pub(super) rule: &'static str,
    /// The word that the rule may be broken with; empty for rules that have none.
    pub(super) about: &'static str,
    /// How the path starts.
    pub(super) path: &'static str,
    /// Why; for whoever wants to remove it.
    pub(super) reason: &'static str,
}

/// The list. Keep it short.
pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception {
        rule: "vocabulary",
        about: "checksum",
        path: "crates/semel/src/codec/",
        reason: "the bytes of a record carry a checksum; a fingerprint is of a request",
    },
    Exception {
        rule: "vocabulary",
        about: "checksum",
        path: "crates/semel/tests/it/codec/",
        reason: "its tests break the checksum of a record's bytes",
    },
    Exception {
        rule: "vocabulary",
        about: "checksum",
        path: "crates/semel-file/",
        reason: "every frame of the log carries a checksum; a fingerprint is of a request",
    },
    Exception {
        rule: "vocabulary",
        about: "conflict",
        path: "crates/semel-cli/src/args/",
        reason: "clap says of arguments that exclude each other that one conflicts with the other",
    },
    Exception {
        rule: "vocabulary",
        about: "conflict",
        path: "crates/semel-http/src/problem.rs",
        reason: "HTTP's name for 409",
    },
    Exception {
        rule: "vocabulary",
        about: "conflict",
        path: "crates/semel-postgres/src/",
        reason: "SQL says `ON CONFLICT`",
    },
];

impl Exception {
    pub(super) fn lets_through(&self, path: &str, fault: &Fault) -> bool {
        self.rule == fault.rule && self.about == fault.about && path.starts_with(self.path)
    }

    pub(super) fn unused(&self) -> Fault {
        let Self { rule, about, path, reason } = self;
        let what = if about.is_empty() { (*rule).to_owned() } else { format!("{rule} `{about}`") };
        Fault::new(
            "exceptions",
            1,
            format!("{what} in {path} (\"{reason}\") is not needed any more: remove it"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_lets_through_its_own_rule_word_and_path_only() {
        let exception = Exception { rule: "r", about: "w", path: "a/", reason: "" };
        assert!(exception.lets_through("a/b.rs", &Fault::new("r", 1, "").about("w")));
        assert!(!exception.lets_through("a/b.rs", &Fault::new("r", 1, "").about("v")));
        assert!(!exception.lets_through("a/b.rs", &Fault::new("q", 1, "").about("w")));
        assert!(!exception.lets_through("b/a/b.rs", &Fault::new("r", 1, "").about("w")));
    }
}
