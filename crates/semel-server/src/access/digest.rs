//! What is kept of a token: enough to know it again, too little to use it.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// What stands before the digits, so that another digest can be told from this one some day.
const PREFIX: &str = "sha256:";
/// What every token that semel makes begins with: tools that look for lost secrets know it by that.
const TOKEN_PREFIX: &str = "semel_";

/// The SHA-256 of a token. Tokens are random and long, so nothing slower is needed to keep them from being guessed.
#[derive(Clone, Copy)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of this token.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Whether both are the same, found out without telling where they differ.
    pub(super) fn is(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A new token: 32 random bytes, as text that needs no quoting anywhere.
pub fn new_token() -> String {
    let bytes: [u8; 32] = rand::random();
    format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

impl FromStr for TokenDigest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let write = "write \"sha256:\" and 64 hex digits, as `semel token digest` prints them";
        if text.starts_with(TOKEN_PREFIX) {
            // It is a secret: it is not repeated.
            return Err(format!("a token itself, and this file keeps digests only; {write}"));
        }
        let digits = text.strip_prefix(PREFIX).ok_or_else(|| format!("no digest; {write}"))?;
        let mut bytes = [0; 32];
        if digits.len() != 64 || !digits.is_ascii() {
            return Err(format!("a digest of {} digits; {write}", digits.chars().count()));
        }
        for (place, byte) in bytes.iter_mut().enumerate() {
            let from = place.saturating_mul(2);
            let pair = digits.get(from..from.saturating_add(2)).unwrap_or_default();
            let is_hex = pair.bytes().all(|digit| digit.is_ascii_hexdigit());
            *byte = u8::from_str_radix(pair, 16)
                .ok()
                .filter(|_| is_hex)
                .ok_or_else(|| format!("no digest: \"{pair}\" is not hex; {write}"))?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_back_as_it_was_written() {
        let digest = TokenDigest::of("semel_x");
        let read: TokenDigest = digest.to_string().parse().expect("is a digest");
        assert!(bool::from(read.is(&digest)) && !bool::from(read.is(&TokenDigest::of("semel_y"))));
    }

    #[test]
    fn what_is_no_digest_is_told_what_to_write_and_a_token_is_not_repeated() {
        let token = new_token();
        for text in
            ["", "sha256:", "sha256:12", &"0".repeat(64), &format!("sha256:{}", "+1".repeat(32)), &token]
        {
            let error = text.parse::<TokenDigest>().expect_err(text);
            assert!(error.contains("semel token digest") && !error.contains(&token), "{error}");
        }
    }

    #[test]
    fn every_new_token_is_another_of_the_same_length() {
        let (one, other) = (new_token(), new_token());
        assert!(one != other && one.len() == "semel_".len() + 43 && one.starts_with("semel_"), "{one}");
    }
}
