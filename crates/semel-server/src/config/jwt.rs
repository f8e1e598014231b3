//! `[principal]` with `from = "jwt"`: a claim of a verified token.

use semel_http::{Jwt, Principal};

use super::callers::{Source, secret_file, variable};
use super::table::Table;
use super::value::{Read, Value, any_text, text};

/// Algorithms with a secret that both sides know.
const SECRET: [&str; 3] = ["HS256", "HS384", "HS512"];
/// Algorithms with a public key.
const PUBLIC: [&str; 9] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
/// A secret that is shorter can be guessed (RFC 7518, 3.2).
const SECRET_BYTES_MIN: usize = 32;
/// The claim that names a caller, unless said otherwise.
const CLAIM: &str = "sub";

/// How a token is verified, and which claim of it is the caller.
#[derive(Clone, Debug)]
pub(super) struct Token {
    algorithm: String,
    key: Key,
    claim: String,
    issuer: Option<String>,
    audience: Option<String>,
    verified: Jwt,
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
    let made = if key.is_secret() {
        Jwt::hmac(&key.bytes, &[&algorithm])
    } else {
        Jwt::public_key(&key.bytes, &[&algorithm])
    };
    let mut verified = match made {
        Ok(jwt) => jwt.claim(&claim),
        Err(error) => {
            table.wrong(key.place.0, &format!("cannot be used: {error}"));
            return None;
        }
    };
    if let Some(issuer) = &issuer {
        verified = verified.issuer(issuer);
    }
    if let Some(audience) = &audience {
        verified = verified.audience(audience);
    }
    Some(Token { algorithm, key, claim, issuer, audience, verified })
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
        Principal::jwt(self.verified.clone())
    }

    /// The lines of a file that say the same, without the key itself.
    pub(super) fn written(&self, quoted: &dyn Fn(&str) -> String) -> Vec<(&'static str, String)> {
        let (name, place) = &self.key.place;
        let mut lines = vec![
            ("algorithm", quoted(&self.algorithm)),
            (name, quoted(place)),
            ("claim", quoted(&self.claim)),
        ];
        lines.extend(self.issuer.as_deref().map(|issuer| ("issuer", quoted(issuer))));
        lines.extend(self.audience.as_deref().map(|audience| ("audience", quoted(audience))));
        lines
    }
}
