//! Bearer tokens, kept as digests.

use std::sync::{Arc, PoisonError, RwLock};

use semel::{Error, ErrorKind, Result};
use subtle::ConditionallySelectable as _;

use super::caller::Caller;
use super::digest::TokenDigest;

/// The longest text that is looked at as a token. Ours are shorter; hashing what is longer would be work for strangers.
const PRESENTED_BYTES_MAX: usize = 512;

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
    pub fn new(known: Vec<Known>) -> Result<Self> {
        for (place, token) in known.iter().enumerate() {
            let before = known.iter().take(place);
            let name = token.caller.name();
            if before.clone().any(|other| other.caller.name() == name) {
                return Err(refused(format!(
                    "there are two tokens named \"{name}\"; give each a name of its own"
                )));
            }
            if let Some(other) =
                before.clone().find(|other| other.digest.as_bytes() == token.digest.as_bytes())
            {
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

    /// From now on, these are known instead. None at all is refused: it would let everybody in.
    pub fn replace(&self, tokens: &Self) -> Result<()> {
        let new = tokens.known();
        if new.is_empty() || self.is_empty() {
            return Err(refused("from tokens to none, or from none to tokens, takes a restart".to_owned()));
        }
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    fn known(&self) -> Arc<[Known]> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
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
        assert_eq!(clone.len(), 1);
    }
}
