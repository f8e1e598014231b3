//! `[principal]`: who a caller is, and where the secrets are that tell; with `from = "jwt"`, a claim of a verified token.

use http::HeaderName;
use ipnet::IpNet;
#[cfg(feature = "jwt")]
use semel_http::Jwt;
use semel_http::Principal;

use super::values::header;
use semel_config::Table;
use semel_config::render::{Lines, quoted};
use semel_config::secret::{secret_file, variable};
use semel_config::value::{Read, Value, Words, any_text, text, word};

/// Algorithms with a secret that both sides know.
const SECRET: [&str; 3] = ["HS256", "HS384", "HS512"];
/// Algorithms with a public key.
const PUBLIC: [&str; 9] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
/// A secret that is shorter can be guessed (RFC 7518, 3.2).
const SECRET_BYTES_MIN: usize = 32;
/// The claim that names a caller, unless said otherwise.
const CLAIM: &str = "sub";

/// Where a caller's name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Authorization,
    Header,
    Cookie,
    Peer,
    Jwt,
    Shared,
}

/// What tells callers apart that the source does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// A cookie.
    Cookie,
    /// Their address, where it can be that of one caller; otherwise a request with a key is refused.
    Peer,
    /// Their address, even where several may share it.
    AnyPeer,
    /// Nothing: all of them are one.
    Shared,
    /// Nothing: a request with a key is refused.
    Nobody,
}

pub(super) const SOURCE: &Words<Source> = &[
    ("authorization", Source::Authorization),
    ("header", Source::Header),
    ("cookie", Source::Cookie),
    ("peer", Source::Peer),
    ("jwt", Source::Jwt),
    ("shared", Source::Shared),
];
pub(super) const OTHERWISE: &Words<Otherwise> = &[
    ("cookie", Otherwise::Cookie),
    ("peer", Otherwise::Peer),
    ("any_peer", Otherwise::AnyPeer),
    ("shared", Otherwise::Shared),
    ("none", Otherwise::Nobody),
];

/// What `[principal]` says.
#[derive(Clone, Debug)]
pub(super) struct Callers {
    pub(super) source: Source,
    pub(super) header: Option<HeaderName>,
    pub(super) cookie: Option<String>,
    pub(super) token: Option<Token>,
    pub(super) otherwise: Otherwise,
    pub(super) trusted_proxies: Vec<IpNet>,
}

pub(super) fn callers(mut table: Table<'_>, trusted_proxies: &[IpNet]) -> Callers {
    let source = table.read("from", word(SOURCE)).unwrap_or(Source::Authorization);
    let otherwise = table.read("or", word(OTHERWISE)).unwrap_or(match source {
        Source::Authorization => Otherwise::Peer,
        Source::Header | Source::Cookie | Source::Peer | Source::Jwt | Source::Shared => Otherwise::Nobody,
    });
    let callers = Callers {
        source,
        header: table.read("header", header),
        cookie: table.read("cookie", text(cookie)),
        token: token(&mut table, source),
        otherwise,
        trusted_proxies: trusted_proxies.to_vec(),
    };
    callers.judge(&table);
    table.finish();
    callers
}

impl Callers {
    /// What was said must be of use: a setting that does nothing hides a mistake.
    fn judge(&self, table: &Table<'_>) {
        if self.source == Source::Header && !table.has("header") {
            table.wrong("header", "is missing: which one? Write header = \"x-api-key\"");
        }
        if self.source != Source::Header && table.has("header") {
            table.wrong("header", "does nothing without from = \"header\"");
        }
        let reads_cookie = self.source == Source::Cookie || self.otherwise == Otherwise::Cookie;
        if reads_cookie && !table.has("cookie") {
            table.wrong("cookie", "is missing: which one? Write cookie = \"session\"");
        }
        if !reads_cookie && table.has("cookie") {
            table.wrong("cookie", "does nothing without from = \"cookie\" or or = \"cookie\"");
        }
        if self.source == Source::Cookie && self.otherwise == Otherwise::Cookie {
            table.wrong("or", "names the cookie again, which `from` reads already");
        }
        if matches!(self.source, Source::Peer | Source::Shared) && table.has("or") {
            table.wrong("or", "does nothing: every caller has an address, or is the one that all are");
        }
    }

    /// The principal; `None` if something that it needs is wrong, which was told.
    pub(super) fn principal(&self) -> Option<Principal> {
        let first = match self.source {
            Source::Authorization => Principal::header("authorization"),
            Source::Header => Principal::header(self.header.as_ref()?.as_str()),
            Source::Cookie => Principal::cookie(self.cookie.as_deref()?),
            Source::Peer => self.any_peer(),
            Source::Jwt => self.token.as_ref()?.principal(),
            Source::Shared => Principal::shared(),
        };
        Some(match self.otherwise {
            Otherwise::Cookie => first.or(Principal::cookie(self.cookie.as_deref()?)),
            Otherwise::Peer => first.or(Principal::lone_peer_address(self.trusted_proxies.clone())),
            Otherwise::AnyPeer => first.or(self.any_peer()),
            Otherwise::Shared => first.or(Principal::shared()),
            Otherwise::Nobody => first,
        })
    }

    fn any_peer(&self) -> Principal {
        if self.trusted_proxies.is_empty() {
            Principal::peer_address()
        } else {
            Principal::peer_address_behind(self.trusted_proxies.clone())
        }
    }
}

/// The name of a cookie (RFC 6265): a token, as the name of a header is, but with a case.
fn cookie(text: &str) -> Result<String, String> {
    match HeaderName::try_from(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(format!("\"{text}\", not the name of a cookie; write \"session\", for example")),
    }
}

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
    #[expect(clippy::unused_self, reason = "the same call as in a build with the feature")]
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
fn token(table: &mut Table<'_>, source: Source) -> Option<Token> {
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
    fn principal(&self) -> Principal {
        self.principal.clone()
    }

    /// The lines of a file that say the same, without the key itself.
    pub(super) fn lines(&self) -> Lines {
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
