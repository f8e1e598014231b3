//! The token that a server is asked with: from the environment or from a file, never from the arguments.

use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use http::HeaderValue;

/// The variable that holds a token.
pub(crate) const VARIABLE: &str = "SEMEL_TOKEN";
/// What everybody on the machine may do.
const READABLE_BY_OTHERS: u32 = 0o004;
/// Longer than any token.
const FILE_BYTES_MAX: u64 = 4_096;

/// A token, and where it was found. Never shown.
pub(crate) struct Token {
    header: HeaderValue,
    found_in: String,
}

impl Token {
    /// The token in this file, or in the environment; `None` if there is none.
    pub(crate) fn find(file: Option<&Path>) -> Result<Option<Self>> {
        match file {
            Some(file) => Self::read(file).map(Some),
            None => Self::of_variable(std::env::var(VARIABLE).ok().as_deref()),
        }
    }

    fn of_variable(text: Option<&str>) -> Result<Option<Self>> {
        let text = text.map(str::trim).filter(|text| !text.is_empty());
        text.map(|text| Self::new(text, VARIABLE.to_owned())).transpose()
    }

    fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let unread = || format!("cannot read the token in {shown}; check the path and its rights");
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
            .with_context(unread)?;
        if fs::metadata(path).with_context(unread)?.permissions().mode() & READABLE_BY_OTHERS != 0 {
            eprintln!(
                "warning: {shown} holds a token, and everybody on this machine may read it; run `chmod o-r` on it"
            );
        }
        if text.trim().is_empty() {
            bail!("{shown} is empty; it must hold a token, as `semel token new` prints it");
        }
        Self::new(text.trim(), shown.to_string())
    }

    fn new(text: &str, found_in: String) -> Result<Self> {
        let is_token = text.bytes().all(|byte| byte.is_ascii_graphic());
        let Some(mut header) =
            is_token.then(|| HeaderValue::from_str(&format!("Bearer {text}")).ok()).flatten()
        else {
            bail!("{found_in} does not hold a token: it has spaces, lines or letters that no token has");
        };
        header.set_sensitive(true);
        Ok(Self { header, found_in })
    }

    /// The value of `Authorization`.
    pub(super) fn header(&self) -> &HeaderValue {
        &self.header
    }

    /// Where it was found, for people.
    pub(super) fn found_in(&self) -> &str {
        &self.found_in
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.found_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_holds_nothing_is_no_token_and_one_with_lines_is_refused() {
        assert!(Token::of_variable(None).expect("is fine").is_none());
        assert!(Token::of_variable(Some(" \n")).expect("is fine").is_none());
        let token = Token::of_variable(Some("semel_x\n")).expect("is fine").expect("is one");
        assert_eq!(token.header(), "Bearer semel_x");
        assert!(!format!("{token:?} {:?}", token.header()).contains("semel_x"));
        for text in ["[[token]]\nname = 'a'", "a b", "ü"] {
            let error = Token::of_variable(Some(text)).expect_err(text).to_string();
            assert!(error.contains("SEMEL_TOKEN") && !error.contains(text), "{error}");
        }
    }
}
