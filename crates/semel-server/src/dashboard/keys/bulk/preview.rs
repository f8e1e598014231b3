//! The keys that an action would be done to: how many there are, and the oldest of them.

use std::sync::Arc;
use std::time::Duration;

use maud::{Markup, html};
use semel::Result as SemelResult;
use semel::clock::Timestamp;
use semel::record::Record;
use semel_http::HttpRecord;

use super::ask::BulkAsk;
use crate::dashboard::parts::{age, key_link, state};
use crate::state::AppState;
use semel_ops::format::number::{counted, grouped};
use semel_ops::format::record;
use semel_ops::lookup::{Order, Selection, walk};

/// How many keys a preview shows.
const PREVIEW_ROWS: usize = 20;
/// How long the keys are counted.
pub(super) const COUNT_TIME: Duration = Duration::from_secs(5);

/// The keys that would be acted on.
pub(super) struct Preview {
    /// The oldest of them.
    records: Vec<Arc<Record>>,
    pub(super) matched: u64,
    /// Whether there was no time to count all of them.
    pub(super) is_cut: bool,
    /// The store's now, before anything was read.
    pub(super) at: Timestamp,
}

impl Preview {
    pub(super) async fn of(served: &AppState, ask: &BulkAsk, selection: &Selection) -> SemelResult<Self> {
        let store = &**served.store;
        let at = walk::now(store).await?;
        let (ids, counted) = if let Some(ids) = &ask.ids {
            (ids.clone(), None)
        } else {
            let sorted = selection.sorted(store, Order::Age, PREVIEW_ROWS, COUNT_TIME).await?;
            (sorted.ids, Some((sorted.matched, sorted.is_cut)))
        };
        let records: Vec<_> =
            selection.load(store, &ids).await?.into_iter().map(|(record, _)| record).collect();
        let (matched, is_cut) = counted.unwrap_or((records.len() as u64, false));
        Ok(Self { records, matched, is_cut, at })
    }

    pub(super) fn count(&self) -> String {
        let least = if self.is_cut { "at least " } else { "" };
        format!("{least}{}", counted(self.matched, "key"))
    }

    pub(super) fn has(&self, is_http: bool) -> bool {
        self.records.iter().any(|record| HttpRecord::of(record).is_some() == is_http)
    }

    /// The oldest of them.
    pub(super) fn table(&self) -> Markup {
        let shown = self.records.len().min(PREVIEW_ROWS);
        html! {
            div.table-box tabindex="0" role="region" aria-label="Preview" {
                table.cards {
                    thead { tr {
                        th scope="col" { "Key" } th scope="col" { "State" } th scope="col" { "Owner or reason" } th.number scope="col" { "For" }
                    } }
                    tbody {
                        @for found in self.records.iter().take(shown) {
                            tr data-test="key-row" {
                                th scope="row" { (key_link(found)) }
                                td data-label="State" { (state(found, self.at)) }
                                td.why data-label="Owner or reason" { bdi { (record::who_or_why(found)) } }
                                td.number data-label="For" { (age(record::since(found), self.at)) }
                            }
                        }
                    }
                }
            }
            @if self.matched > shown as u64 {
                p.muted { "The oldest " (shown) " of " (grouped(self.matched)) ". " }
            }
        }
    }
}
