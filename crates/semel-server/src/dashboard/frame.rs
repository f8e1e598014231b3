//! What all pages share: their frame, and style, script and icon, embedded in the binary. The digest in a name lets browsers
//! keep them for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use maud::{DOCTYPE, Markup, html};
use sha2::{Digest, Sha256};

use super::session::Visitor;
use super::store_banner::banner;
use semel_ops::format::scope;

/// For a year, and never asked for again meanwhile.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// What is around a page.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    pub(super) tab: Tab,
}

/// Which part of the dashboard a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tab {
    Overview,
    Attention,
    Keys,
    Pipelines,
    None,
}

const TABS: [(Tab, &str, &str); 4] = [
    (Tab::Overview, "/", "Overview"),
    (Tab::Attention, "/attention", "Needs a person"),
    (Tab::Keys, "/keys", "Keys"),
    (Tab::Pipelines, "/pipelines", "Pipelines"),
];

/// A whole page; without a visitor, one that needs no login.
pub(super) fn framed(visitor: Option<&Visitor>, frame: &Frame<'_>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (frame.title) " · semel" }
                link rel="icon" type="image/svg+xml" href=(ICON.path);
                link rel="stylesheet" href=(STYLE.path);
                script src=(LIVE.path) defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header.top {
                    div.bar {
                        a.brand href="/" { (mark()) span { "semel" } }
                        @if let Some(visitor) = visitor { (tabs(frame.tab)) (who(visitor)) }
                    }
                }
                @if let Some(visitor) = visitor { (banner(&visitor.store)) }
                main #main tabindex="-1" { (content) }
                footer.bottom {
                    p { "All times are UTC, on the store's clock; point at a time for your local time." }
                    p { a href="/docs" { "API" } " · " a href="/metrics" { "Metrics" } }
                }
            }
        }
    }
}

fn tabs(current: Tab) -> Markup {
    html! {
        nav aria-label="Main" {
            ul {
                @for (tab, address, word) in TABS {
                    li { a href=(address) aria-current=[(tab == current).then_some("page")] { (word) } }
                }
            }
        }
    }
}

fn who(visitor: &Visitor) -> Markup {
    let caller = &visitor.caller;
    let reach = caller.scope().iter().map(|part| &**part);
    html! {
        div.who {
            p {
                span.name { (caller.name()) }
                " "
                @if visitor.is_known {
                    span.role { (caller.role_word()) }
                    @if !caller.scope().is_empty() { " " span.reach title="The scope that this token reaches" { (scope::shown(reach)) } }
                } @else {
                    span.role { "no tokens: only this machine" }
                }
            }
            @if visitor.is_known {
                form method="post" action="/logout" {
                    input type="hidden" name="csrf" value=(visitor.csrf());
                    button.quiet type="submit" { "Log out" }
                }
            }
        }
    }
}

/// The sign of semel: one dot in a ring, once.
fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" {
            circle cx="12" cy="12" r="9" fill="none" stroke="currentColor" stroke-width="2.5" {}
            circle cx="12" cy="12" r="3.5" fill="currentColor" {}
        }
    }
}

/// Something that pages need.
struct Asset {
    path: String,
    media_type: &'static str,
    text: &'static str,
}

static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("style", "css", "text/css; charset=utf-8", include_str!("assets/style.css")));
static LIVE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("live", "js", "text/javascript; charset=utf-8", include_str!("assets/live.js"))
});
static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("assets/icon.svg")));

impl Asset {
    fn new(name: &str, extension: &str, media_type: &'static str, text: &'static str) -> Self {
        let digest = <[u8; 32]>::from(Sha256::digest(text.as_bytes()));
        let digest = digest.iter().take(8).fold(0_u64, |digest, byte| digest << 8 | u64::from(*byte));
        Self { path: format!("/assets/{name}.{digest:016x}.{extension}"), media_type, text }
    }
}

/// Answers with an asset. They hold nothing secret: the page where people log in needs them, too.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    let found = [&STYLE, &LIVE, &ICON].into_iter().find(|asset| asset.path.ends_with(&format!("/{name}")));
    match found {
        Some(asset) => {
            let headers = [
                (CONTENT_TYPE, asset.media_type),
                (CACHE_CONTROL, FOR_EVER),
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            (headers, asset.text).into_response()
        }
        // Of another release, which this server does not have: it must not be cached.
        None => {
            (StatusCode::NOT_FOUND, [(CACHE_CONTROL, "no-store")], "there is no such asset\n").into_response()
        }
    }
}
