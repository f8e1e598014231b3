//! What all pages share.

use maud::{DOCTYPE, Markup, html};

use super::assets::{ICON, LIVE, STYLE};
use super::session::Visitor;
use semel_ops::format::scope;

/// What is around a page.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    pub(super) tab: Tab,
}

/// Which part of the dashboard a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tab {
    Overview,
    Keys,
    Pipelines,
    None,
}

const TABS: [(Tab, &str, &str); 3] = [
    (Tab::Overview, "/", "Overview"),
    (Tab::Keys, "/keys", "Keys"),
    (Tab::Pipelines, "/pipelines", "Pipelines"),
];

/// A whole page; without a visitor, one that anybody may see.
pub(super) fn framed(visitor: Option<&Visitor>, frame: &Frame<'_>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (frame.title) " · semel" }
                link rel="icon" type="image/svg+xml" href=(ICON.path());
                link rel="stylesheet" href=(STYLE.path());
                script src=(LIVE.path()) defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header.top {
                    div.bar {
                        a.brand href="/" { (mark()) span { "semel" } }
                        @if let Some(visitor) = visitor { (tabs(frame.tab)) (who(visitor)) }
                    }
                }
                main #main tabindex="-1" { (content) }
                footer.bottom {
                    p { "semel makes work happen once. All times are UTC, on the store's clock." }
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
pub(super) fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" {
            circle cx="12" cy="12" r="9" fill="none" stroke="currentColor" stroke-width="2.5" {}
            circle cx="12" cy="12" r="3.5" fill="currentColor" {}
        }
    }
}
