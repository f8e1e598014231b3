//! Callers by a claim of their bearer token (RFC 7519), once its signature and its times are good.

use std::fmt;
use std::time::Duration;

use jsonwebtoken::crypto::rust_crypto;
use jsonwebtoken::errors::ErrorKind as JwtErrorKind;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Validation, decode};
use semel::{Error, ErrorKind};
use serde_json::{Map, Value};

/// How far clocks may be apart, unless said otherwise.
const LEEWAY_DEFAULT: Duration = Duration::from_mins(1);

/// Which tokens are good, and which of their claims names the caller.
///
/// A token must be signed with one of the stated algorithms and carry `exp`; `nbf` is kept to, if it is there. Which
/// key may verify which algorithm is fixed here, so no token can have a public key taken for a secret, and none goes
/// unsigned.
///
/// ```
/// use semel_http::{Jwt, Principal};
///
/// let secret = b"at least thirty-two bytes of randomness";
/// let jwt = Jwt::hmac(secret, &["HS256"])?.issuer("https://login.example.org").claim("user_id");
/// let principal = Principal::jwt(jwt);
/// # Ok::<(), semel::Error>(())
/// ```
#[derive(Clone)]
pub struct Jwt {
    key: DecodingKey,
    validation: Validation,
    claim: Box<str>,
}

/// What a claim says.
pub(super) enum Claim {
    Text(String),
    Number(String),
}

impl Jwt {
    /// Tokens signed with a shared secret: `HS256`, `HS384`, `HS512`.
    pub fn hmac(secret: &[u8], algorithms: &[&str]) -> semel::Result<Self> {
        if secret.is_empty() {
            return Err(invalid(
                "the secret of the tokens is empty, and anybody could sign with that; give the real one",
            ));
        }
        if find(secret, b"-----BEGIN") {
            return Err(invalid(
                "the secret of the tokens is a PEM key, and whoever knows a public key could sign with it; give it as \
                 the public key",
            ));
        }
        let (family, algorithms) = family(algorithms)?;
        if family != AlgorithmFamily::Hmac {
            return Err(invalid(
                "only HS256, HS384 and HS512 use a shared secret; give the public key for others",
            ));
        }
        Ok(Self::new(DecodingKey::from_secret(secret), algorithms))
    }

    /// Tokens signed with a private key, whose public key this is, as PEM: `RS256`, `RS384`, `RS512`, `PS256`, `PS384`,
    /// `PS512`, `ES256`, `ES384`, `EdDSA`. All algorithms must be of one kind.
    pub fn public_key(pem: &[u8], algorithms: &[&str]) -> semel::Result<Self> {
        if find(pem, b"PRIVATE KEY-----") {
            return Err(invalid(
                "the key is a private one, which nobody but the issuer should have; give the public one",
            ));
        }
        let (family, algorithms) = family(algorithms)?;
        let key = match family {
            AlgorithmFamily::Hmac => {
                return Err(invalid(
                    "HS256, HS384 and HS512 use a shared secret; give it as one, or name other algorithms",
                ));
            }
            AlgorithmFamily::Rsa => DecodingKey::from_rsa_pem(pem),
            AlgorithmFamily::Ec => DecodingKey::from_ec_pem(pem),
            AlgorithmFamily::Ed => DecodingKey::from_ed_pem(pem),
        };
        let unreadable = "the public key of the tokens is no PEM, or is for other algorithms; give the issuer's, as `BEGIN PUBLIC KEY`";
        Ok(Self::new(key.map_err(|error| invalid(unreadable).caused_by(error))?, algorithms))
    }

    fn new(key: DecodingKey, algorithms: Vec<Algorithm>) -> Self {
        // Whoever builds with another provider as well would have none by default, and every token would be a panic. An
        // application that chose one keeps it.
        let _ = rust_crypto::DEFAULT_PROVIDER.install_default();
        let validation = Validation {
            algorithms,
            validate_nbf: true,
            // Until an audience is stated: whom a token is for is no question of who sent it.
            validate_aud: false,
            leeway: LEEWAY_DEFAULT.as_secs(),
            ..Validation::default()
        };
        Self { key, validation, claim: "sub".into() }
    }

    /// The claim that names the caller, a text or an integer. By default `sub`.
    #[must_use]
    pub fn claim(mut self, claim: &str) -> Self {
        self.claim = claim.into();
        self
    }

    /// Only tokens of this issuer.
    #[must_use]
    pub fn issuer(mut self, issuer: &str) -> Self {
        self.validation.set_issuer(&[issuer]);
        self.validation.required_spec_claims.insert("iss".to_owned());
        self
    }

    /// Only tokens for this audience.
    #[must_use]
    pub fn audience(mut self, audience: &str) -> Self {
        self.validation.set_audience(&[audience]);
        self.validation.validate_aud = true;
        self.validation.required_spec_claims.insert("aud".to_owned());
        self
    }

    /// How far the issuer's clock and this one may be apart. By default a minute.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.validation.leeway = leeway.as_secs();
        self
    }

    /// What the claim says, or why the token is refused.
    pub(super) fn claim_of(&self, token: &str) -> Result<Claim, &'static str> {
        let claims: Map<String, Value> =
            decode(token, &self.key, &self.validation).map_err(|error| reason(error.kind()))?.claims;
        match claims.get(&*self.claim) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Claim::Text(text.clone())),
            Some(Value::Number(number)) if !number.is_f64() => Ok(Claim::Number(number.to_string())),
            Some(_) => Err("the claim that names the caller is neither a text nor an integer"),
            None => Err("the claim that names the caller is missing"),
        }
    }

    /// The claim that names the caller.
    pub(super) fn claim_name(&self) -> &str {
        &self.claim
    }
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claim {} of a bearer token signed with {:?}", self.claim, self.validation.algorithms)
    }
}

/// Why a token was refused, in words of our own: those of the library may repeat parts of the token.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library's kinds may grow, and all others mean this")]
fn reason(kind: &JwtErrorKind) -> &'static str {
    match kind {
        JwtErrorKind::ExpiredSignature => "it is expired",
        JwtErrorKind::ImmatureSignature => "it is not valid yet",
        JwtErrorKind::InvalidSignature => "its signature is wrong",
        JwtErrorKind::InvalidAlgorithm => "it is signed with another algorithm",
        JwtErrorKind::InvalidIssuer => "it is of another issuer",
        JwtErrorKind::InvalidAudience => "it is for another audience",
        JwtErrorKind::MissingRequiredClaim(_) => "it lacks `exp`, or `iss` or `aud` where these are stated",
        _ => "it is malformed",
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// Reads the names of algorithms, which must all be of one kind.
fn family(names: &[&str]) -> semel::Result<(AlgorithmFamily, Vec<Algorithm>)> {
    let read = |name: &&str| {
        name.parse().map_err(|_| {
            invalid(&format!("`{name}` is no algorithm that tokens are verified with; name what the issuer signs with: RS256, say"))
        })
    };
    let algorithms = names.iter().map(read).collect::<semel::Result<Vec<Algorithm>>>()?;
    let mut families = algorithms.iter().map(|algorithm| algorithm.family());
    let first = families.next().ok_or_else(|| {
        invalid("no algorithm is stated; name those that the issuer signs with, and no others")
    })?;
    if families.any(|family| family != first) {
        return Err(invalid(
            "the algorithms are of several kinds, and one key is of one kind; name those of one kind",
        ));
    }
    Ok((first, algorithms))
}

fn find(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests;
