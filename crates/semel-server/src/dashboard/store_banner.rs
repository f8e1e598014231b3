//! What every page says while the store takes no claims, or while a setting of its server breaks the promise.

use maud::{Markup, html};
use semel::store::Finding;
use semel_ops::store_url::NotReady;

use crate::monitoring::StoreStatus;

/// The place of the banner, which is empty while all is well: the script fills it without a reload.
pub(super) fn banner(status: &StoreStatus) -> Markup {
    html! {
        div.store-banner #store-banner data-live-too role="status" {
            @if !status.is_fine() { (content(status)) }
        }
    }
}

fn content(status: &StoreStatus) -> Markup {
    let class = if status.not_ready.is_some() { "flash wrong" } else { "flash warning" };
    html! {
        section class=(class) data-test="store-banner" aria-label="Store" {
            p { strong { (headline(status)) } " " (consequence(status)) }
            @if !status.broken_settings.is_empty() { (settings(&status.broken_settings)) }
        }
    }
}

fn headline(status: &StoreStatus) -> String {
    match status.not_ready {
        Some(NotReady::Refused) => {
            "The store refuses new claims: a setting of its server breaks the promise.".to_owned()
        }
        Some(cause) => format!("The store is not ready: {cause}."),
        None => "What the store acknowledges could be lost: a setting breaks the promise.".to_owned(),
    }
}

fn consequence(status: &StoreStatus) -> &'static str {
    match status.not_ready {
        Some(NotReady::Refused) => {
            "Runs that were granted go on and can be completed. New claims are taken again within a minute after the \
             setting is mended."
        }
        Some(_) => {
            "What was acknowledged is kept. Callers get 503 and ask again. The server's log has the error."
        }
        None => "Claims are taken all the same, because this store is used as it is configured.",
    }
}

fn settings(broken: &[Finding]) -> Markup {
    html! {
        div.table-box {
            table.cards {
                thead { tr { th scope="col" { "Setting" } th scope="col" { "Found" } th scope="col" { "Needed" } } }
                tbody {
                    @for Finding { setting, found, wanted, .. } in broken {
                        tr {
                            th scope="row" { code { bdi { (setting) } } }
                            td data-label="Found" { code { bdi { (found.as_deref().unwrap_or("not readable")) } } }
                            td data-label="Needed" { bdi { (wanted) } }
                        }
                    }
                }
            }
        }
    }
}
