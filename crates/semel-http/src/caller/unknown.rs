//! Why the caller of a request is not known: what its client hears, and what the log says.

use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderName, HeaderValue, StatusCode};

use crate::problem::{Code, Problem};

/// Why the caller of a request is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnknownCaller {
    /// Nothing in the request says who sent it.
    NotStated,
    /// There is an address only, and more than one caller may have it.
    SharedAddress(Shared),
    /// The bearer token was refused, for this reason. The reason holds nothing of the token.
    #[cfg_attr(not(feature = "jwt"), expect(dead_code, reason = "only a JWT is refused by itself"))]
    InvalidToken(&'static str),
}

/// Why an address may be that of several callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// The request has a cookie: a browser, whose users may share an address.
    Cookie,
    /// It has credentials that the settings do not name.
    Credentials(HeaderName),
    /// It was forwarded by a proxy that is not trusted.
    Forwarded(HeaderName),
    /// It was forwarded by a trusted proxy that does not say for whom.
    ProxyOnly,
}

impl Shared {
    fn seen(&self) -> String {
        match self {
            Self::Cookie => "has a cookie".to_owned(),
            Self::Credentials(name) => format!("has `{name}`, which is not read"),
            Self::Forwarded(name) => format!("has `{name}` from a proxy that is not trusted"),
            Self::ProxyOnly => "comes from a trusted proxy that does not say for whom".to_owned(),
        }
    }

    /// The setting that tells such callers apart, in the words of the proxy's configuration.
    fn setting(&self) -> String {
        match self {
            Self::Cookie => "[principal] from = \"cookie\", cookie = \"NAME\"".to_owned(),
            Self::Credentials(name) if name == http::header::AUTHORIZATION => {
                "[principal] from = \"authorization\"".to_owned()
            }
            Self::Credentials(name) => format!("[principal] from = \"header\", header = \"{name}\""),
            Self::Forwarded(_) => "trusted_proxies = [\"ADDRESS OF THE PROXY\"]".to_owned(),
            Self::ProxyOnly => "X-Forwarded-For at that proxy".to_owned(),
        }
    }
}

impl UnknownCaller {
    /// What the client hears.
    pub(crate) fn problem(&self) -> Problem {
        match self {
            Self::NotStated => Problem::new(
                Code::CallerUnknown,
                "A key belongs to a caller, and nothing in this request says who that is. Send your credentials with it.",
            ),
            Self::SharedAddress(shared) => {
                let detail = format!(
                    "A key belongs to a caller, and this request {}: several callers may share its address. Send \
                     `Authorization` with it; or the operator of this service sets {}.",
                    shared.seen(),
                    shared.setting()
                );
                Problem::new(Code::CallerUnknown, detail)
            }
            Self::InvalidToken(_) => Problem::new(
                Code::CallerUnknown,
                "The bearer token is expired or not valid here. Get a new one, and send the request again with the same key.",
            )
            .status(StatusCode::UNAUTHORIZED)
            .challenge(HeaderValue::from_static("Bearer error=\"invalid_token\"")),
        }
    }
}

/// What was written to the log already. A setting that is missing is missing for every request: once is enough.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    cookie: AtomicBool,
    credentials: AtomicBool,
    forwarded: AtomicBool,
    proxy_only: AtomicBool,
    jwt_digested: AtomicBool,
}

impl Warnings {
    pub(super) fn refused(&self, unknown: &UnknownCaller) {
        match unknown {
            UnknownCaller::NotStated => {}
            UnknownCaller::InvalidToken(reason) => {
                tracing::warn!(reason, "semel: a bearer token was refused");
            }
            UnknownCaller::SharedAddress(shared) => {
                let warned = match shared {
                    Shared::Cookie => &self.cookie,
                    Shared::Credentials(_) => &self.credentials,
                    Shared::Forwarded(_) => &self.forwarded,
                    Shared::ProxyOnly => &self.proxy_only,
                };
                if first(warned) {
                    let setting = shared.setting();
                    tracing::warn!(
                        "semel: a key was refused with caller_unknown: its request {}, so several callers may share its \
                         address; set {setting} (not repeated)",
                        shared.seen()
                    );
                }
            }
        }
    }

    /// A token that is refreshed every few minutes is another text each time, and so is its digest.
    pub(super) fn jwt_digested(&self) {
        if first(&self.jwt_digested) {
            tracing::warn!(
                "semel: callers are told apart by a digest of Authorization, and a bearer token looks like a JWT: once it \
                 is refreshed, it is another caller, and its retries run again; set [principal] from = \"jwt\", or use \
                 Principal::jwt (not repeated)"
            );
        }
    }
}

fn first(warned: &AtomicBool) -> bool {
    // Read first: a request after the warning must not write to memory that all of them share.
    !warned.load(Ordering::Relaxed) && !warned.swap(true, Ordering::Relaxed)
}
