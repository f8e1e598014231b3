//! `[principal]` with `from = "jwt"`: a claim of a verified token.

#[cfg(feature = "jwt")]
use semel_http::Jwt;
use semel_http::Principal;

use super::callers::Source;
use semel_config::Table;
use semel_config::secret::{secret_file, variable};
use semel_config::value::{Read, Value, any_text, text};

/// Algorithms with a secret that both sides know.
const SECRET: [&str; 3] = ["HS256", "HS384", "HS512"];
/// Algorithms with a public key.
const PUBLIC: [&str; 9] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
/// A secret that is shorter can be guessed (RFC 7518, 3.2).
const SECRET_BYTES_MIN: usize = 32;
/// The claim that names a caller, unless said otherwise.
const CLAIM: &str = "sub";

/// A caller that is known by its token.
#[derive(Clone, Debug)]
pub(super) struct Token {
    verified: Verified,
    principal: Principal,
}

/// How a token is verified, and which claim of it is the caller.
#[derive(Clone, Debug)]
struct Verified {
    algorithm: String,
    key: Key,
    claim: String,
    issuer: Option<String>,
    audience: Option<String>,
}

impl Verified {
    #[cfg(feature = "jwt")]
    fn principal(&self) -> Result<Principal, String> {
        let made = if self.key.is_secret() {
            Jwt::hmac(&self.key.bytes, &[&self.algorithm])
        } else {
            Jwt::public_key(&self.key.bytes, &[&self.algorithm])
        };
        let mut jwt = made.map_err(|error| error.to_string())?.claim(&self.claim);
        if let Some(issuer) = &self.issuer {
            jwt = jwt.issuer(issuer);
        }
        if let Some(audience) = &self.audience {
            jwt = jwt.audience(audience);
        }
        Ok(Principal::jwt(jwt))
    }

    #[cfg(not(feature = "jwt"))]
    fn principal(&self) -> Result<Principal, String> {
        Err(semel_ops::missing_feature_message("JWT", "jwt"))
    }
}

/// The key, and where it was found.
#[derive(Clone)]
struct Key {
    place: (&'static str, String),
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Key").field(&self.place).finish()
    }
}

/// What the table says of tokens, if callers are known by them. What is wrong is told.
pub(super) fn token(table: &mut Table<'_>, source: Source) -> Option<Token> {
    let algorithm = table.read("algorithm", text(algorithm));
    let keys = [
        table.read("public_key_file", |value| key("public_key_file", value)),
        table.read("secret_file", |value| key("secret_file", value)),
        table.read("secret_env", |value| key("secret_env", value)),
    ];
    let claim = table.read("claim", any_text).unwrap_or_else(|| CLAIM.to_owned());
    let (issuer, audience) = (table.read("issuer", any_text), table.read("audience", any_text));
    if source != Source::Jwt {
        for name in
            ["algorithm", "public_key_file", "secret_file", "secret_env", "claim", "issuer", "audience"]
        {
            if table.has(name) {
                table.wrong(name, "does nothing without from = \"jwt\"");
            }
        }
        return None;
    }
    judge(table, algorithm.as_deref());
    let mut keys = keys.into_iter().flatten();
    let (Some(key), None) = (keys.next(), keys.next()) else { return None };
    if key.is_secret() && key.bytes.len() < SECRET_BYTES_MIN {
        table.wrong(
            key.place.0,
            &format!("is a secret of {} bytes; take {SECRET_BYTES_MIN} at least", key.bytes.len()),
        );
    }
    let algorithm = algorithm?;
    let verified = Verified { algorithm, key, claim, issuer, audience };
    match verified.principal() {
        Ok(principal) => Some(Token { verified, principal }),
        Err(error) => {
            table.wrong(verified.key.place.0, &format!("cannot be used: {error}"));
            None
        }
    }
}

/// One algorithm, one key, and the two of a kind.
fn judge(table: &Table<'_>, algorithm: Option<&str>) {
    if !table.has("algorithm") {
        table.wrong("algorithm", "is missing: which one signs the tokens? Write algorithm = \"RS256\"");
    }
    let given: Vec<_> =
        ["public_key_file", "secret_file", "secret_env"].into_iter().filter(|name| table.has(name)).collect();
    let Some(algorithm) = algorithm else { return };
    let (wanted, instead) = if SECRET.contains(&algorithm) {
        (
            ["secret_env", "secret_file"].as_slice(),
            "a secret: secret_env = \"NAME\" or secret_file = \"PATH\"",
        )
    } else {
        (["public_key_file"].as_slice(), "a public key: public_key_file = \"PATH\"")
    };
    match given.as_slice() {
        [name] if wanted.contains(name) => {}
        [name] => table.wrong(name, &format!("does not go with {algorithm}, which needs {instead}")),
        [] => table.wrong("algorithm", &format!("is {algorithm}, which needs {instead}")),
        [_, second, ..] => table.wrong(second, "is a second key; name one"),
    }
}

fn algorithm(text: &str) -> Result<String, String> {
    let known = SECRET.iter().chain(&PUBLIC);
    if known.clone().any(|known| *known == text) {
        return Ok(text.to_owned());
    }
    let all: Vec<_> = known.copied().collect();
    Err(format!("\"{text}\", no algorithm that is known; there are {}", all.join(", ")))
}

fn key(name: &'static str, value: &Value<'_>) -> Read<Key> {
    let place = any_text(value)?;
    let bytes = if name == "secret_env" {
        variable(value, &place)?.into_bytes()
    } else {
        secret_file(value, &place)?
    };
    Ok(Key { place: (name, place), bytes })
}

impl Key {
    fn is_secret(&self) -> bool {
        self.place.0 != "public_key_file"
    }
}

impl Token {
    pub(super) fn principal(&self) -> Principal {
        self.principal.clone()
    }

    /// The lines of a file that say the same, without the key itself.
    pub(super) fn written(&self, quoted: &dyn Fn(&str) -> String) -> Vec<(&'static str, String)> {
        let verified = &self.verified;
        let (name, place) = &verified.key.place;
        let mut lines = vec![
            ("algorithm", quoted(&verified.algorithm)),
            (name, quoted(place)),
            ("claim", quoted(&verified.claim)),
        ];
        lines.extend(verified.issuer.as_deref().map(|issuer| ("issuer", quoted(issuer))));
        lines.extend(verified.audience.as_deref().map(|audience| ("audience", quoted(audience))));
        lines
    }
}
