//! The layer of axum-idempotent, as its front page has it: cookies outside, then sessions, then the layer.
//!
//! In its quicker mode, where the header is the key and the request is not looked at; on the store in this process, which is
//! the quickest that it has. It claims nothing before the handler runs: two at once both run.

use std::sync::Arc;

use axum::Router;
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use ruts::store::moka::MokaStore;
use ruts::{CookieOptions, SessionLayer};
use tower_cookies::CookieManagerLayer;

use crate::http::wire::SESSION_COOKIE;

const DAY_SECONDS: i64 = 24 * 60 * 60;

pub(super) fn layered(charges: Router) -> Router {
    // Room for every session that there is. A record is one field of the caller's session; whoever writes one looks at all of
    // them. Sessions are therefore many and short here, which suits it: see `CALLERS`.
    let store = Arc::new(MokaStore::builder().max_capacity(1_000_000).build());
    let options = IdempotentOptions::new(DAY_SECONDS).use_idempotency_key_header(None, false);
    let cookie = CookieOptions::build().name(SESSION_COOKIE).session_cookie().path("/");
    charges
        .layer(IdempotentLayer::<MokaStore>::new(options))
        .layer(SessionLayer::new(store).with_cookie_options(cookie))
        .layer(CookieManagerLayer::new())
}
