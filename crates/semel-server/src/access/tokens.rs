//! Bearer tokens, kept as digests, in a file of their own: who may write it can make tokens, so nobody else may.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use semel::{Error, ErrorKind};
use semel_config::Errors;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq};

use super::caller::Caller;
use crate::config;
use semel_ops::record_json::read_hex;

/// The longest text that is looked at as a token. Ours are shorter; hashing what is longer would be work for strangers.
const PRESENTED_BYTES_MAX: usize = 512;
/// What stands before the digits, so that another digest can be told from this one some day.
const PREFIX: &str = "sha256:";
/// What every token that semel makes begins with: tools that look for lost secrets know it by that.
const TOKEN_PREFIX: &str = "semel_";
/// More than a file of tokens can need.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// What others, and the group, may do.
const WRITABLE_BY_OTHERS: u32 = 0o022;
const READABLE_BY_OTHERS: u32 = 0o004;

/// The tokens that a server knows. Clones know the same, also after they were replaced.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    known: Arc<RwLock<Arc<[Known]>>>,
}

/// One token: what is kept of it, and whose it is.
#[derive(Debug)]
pub struct Known {
    /// Of the token.
    pub digest: TokenDigest,
    /// Who has it.
    pub caller: Arc<Caller>,
}

impl Tokens {
    /// No token at all: everybody may do everything, so only this machine may reach the server.
    pub fn none() -> Self {
        Self::default()
    }

    /// These tokens. Two of one name could not be told apart in the audit log, and two of one digest are one.
    pub fn new(known: Vec<Known>) -> semel::Result<Self> {
        for (place, token) in known.iter().enumerate() {
            let before = known.iter().take(place);
            let name = token.caller.name();
            if before.clone().any(|other| other.caller.name() == name) {
                return Err(refused(format!(
                    "there are two tokens named \"{name}\"; give each a name of its own"
                )));
            }
            if let Some(other) = before.clone().find(|other| other.digest.0 == token.digest.0) {
                let other = other.caller.name();
                return Err(refused(format!(
                    "\"{name}\" and \"{other}\" are one token; make another for one of them"
                )));
            }
        }
        Ok(Self { known: Arc::new(RwLock::new(known.into())) })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.known().is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known().len()
    }

    /// All callers that there may be, for counts by scope.
    pub fn callers(&self) -> impl Iterator<Item = Arc<Caller>> {
        self.known().iter().map(|known| Arc::clone(&known.caller)).collect::<Vec<_>>().into_iter()
    }

    /// Whose token this is. Takes as long for a wrong one as for a right one.
    pub fn caller(&self, presented: &str) -> Option<Arc<Caller>> {
        if presented.len() > PRESENTED_BYTES_MAX {
            return None;
        }
        let (known, digest) = (self.known(), TokenDigest::of(presented));
        // Every token is looked at, also after the right one was found.
        let mut found = u64::MAX;
        for (place, token) in known.iter().enumerate() {
            found.conditional_assign(&(place as u64), token.digest.is(&digest));
        }
        let found = usize::try_from(found).ok()?;
        known.get(found).map(|token| Arc::clone(&token.caller))
    }

    /// From now on, these are known instead. None at all instead of some is refused: it would let everybody in.
    pub fn replace(&self, tokens: &Self) -> semel::Result<()> {
        let new = tokens.known();
        if new.is_empty() != self.is_empty() {
            return Err(refused("from tokens to none, or from none to tokens, takes a restart".to_owned()));
        }
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// The tokens in this text. The name is for errors.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        config::tokens(text, name)
    }

    /// The tokens in this file.
    pub fn read(path: &Path) -> Result<FromFile, Errors> {
        let name = path.display().to_string();
        let wrong = |message: String| Errors::whole(&name, message);
        let (text, mode) = text(path)
            .map_err(|error| wrong(format!("cannot be read: {error}; name the file with --tokens")))?;
        if mode & WRITABLE_BY_OTHERS != 0 {
            let message =
                "may be written by others, who could make tokens of their own; run `chmod go-w` on it";
            return Err(wrong(message.to_owned()));
        }
        let is_open = mode & READABLE_BY_OTHERS != 0;
        let warning = is_open.then(|| {
            format!("{name} may be read by everybody on this machine; digests forge nothing, but run `chmod o-r` on it")
        });
        Ok(FromFile { tokens: Self::parse(&text, &name)?, warning })
    }

    fn known(&self) -> Arc<[Known]> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// Tokens, and what is to be said about the file that they are in.
#[derive(Debug)]
pub struct FromFile {
    /// Who may ask.
    pub tokens: Tokens,
    /// What is not wrong, but not as it should be.
    pub warning: Option<String>,
}

/// What the file holds, and who may do what with it: both of the one file that was opened.
fn text(path: &Path) -> io::Result<(String, u32)> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.len() > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 16 MiB"));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok((text, about.permissions().mode()))
}

/// The SHA-256 of a token. Tokens are random and long, so nothing slower is needed to keep them from being guessed.
#[derive(Clone, Copy)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of this token.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Whether both are the same, found out without telling where they differ.
    fn is(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
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
        if digits.len() != 64 || !digits.is_ascii() {
            return Err(format!("a digest of {} digits; {write}", digits.chars().count()));
        }
        read_hex(digits).map(Self).ok_or_else(|| {
            let is_hex = |pair: &[u8]| pair.iter().all(u8::is_ascii_hexdigit);
            let pair = digits.as_bytes().chunks(2).find(|pair| !is_hex(pair)).unwrap_or_default();
            format!("no digest: \"{}\" is not hex; {write}", String::from_utf8_lossy(pair))
        })
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
    use crate::access::{Quota, Role};

    fn known(name: &str, token: &str) -> Known {
        let caller = Arc::new(Caller::new(name, Role::Read, Vec::new(), Quota::none()));
        Known { digest: TokenDigest::of(token), caller }
    }

    fn name(tokens: &Tokens, presented: &str) -> Option<String> {
        tokens.caller(presented).map(|caller| caller.name().to_owned())
    }

    #[test]
    fn only_the_token_itself_finds_its_caller() {
        let tokens = Tokens::new(vec![known("a", "semel_a"), known("b", "semel_b")]).expect("differ");
        assert_eq!(
            (name(&tokens, "semel_a"), name(&tokens, "semel_b")),
            (Some("a".into()), Some("b".into()))
        );
        let digest = TokenDigest::of("semel_a").to_string();
        for wrong in ["", "semel_", "semel_c", " semel_a", &digest, &"x".repeat(1 << 20)] {
            assert_eq!(name(&tokens, wrong), None, "{wrong}");
        }
        assert_eq!(name(&Tokens::none(), ""), None);
    }

    #[test]
    fn two_of_one_name_or_one_digest_are_refused() {
        let one_name = Tokens::new(vec![known("a", "1"), known("a", "2")]).expect_err("one name");
        assert!(one_name.to_string().contains("two tokens named \"a\""), "{one_name}");
        let one_token = Tokens::new(vec![known("a", "1"), known("b", "1")]).expect_err("one token");
        assert!(one_token.to_string().contains("\"b\" and \"a\" are one token"), "{one_token}");
    }

    #[test]
    fn replaced_tokens_are_known_everywhere_and_never_none() {
        let tokens = Tokens::new(vec![known("a", "1")]).expect("is one");
        let clone = tokens.clone();
        tokens.replace(&Tokens::new(vec![known("b", "2")]).expect("is one")).expect("is replaced");
        assert_eq!((name(&clone, "1"), name(&clone, "2")), (None, Some("b".into())));
        assert!(tokens.replace(&Tokens::none()).is_err() && Tokens::none().replace(&tokens).is_err());
        assert!(Tokens::none().replace(&Tokens::none()).is_ok(), "nothing changes for a server without any");
        assert_eq!(clone.len(), 1);
    }

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
