//! The store of a server, as every command reads it. Whatever would change a record by itself is refused.

use std::fmt::Write as _;
use std::sync::Arc;

use semel::clock::Timestamp;
use semel::store::{Answer, Finding, Loaded, Page, Reply, Scan, Store, SwapReplies, Swaps, Swept};
use semel::{Error, ErrorKind, RecordId, Result};
use semel_ops::served_store::{
    CheckedStore, LOAD_IDS_MAX, LoadedRecord, LoadedRecords, SCAN_RECORDS_MAX, SWEEP_RECORDS_MAX,
    ScannedRecords, SweptRecords,
};
use semel_ops::store_url::{OperatedStore, Pending};
use serde_json::json;

use super::client::Client;

/// The records of a server's store.
pub(super) struct ServerStore {
    client: Arc<Client>,
}

impl ServerStore {
    pub(super) fn new(client: Arc<Client>) -> Self {
        Self { client }
    }
}

impl Store for ServerStore {
    fn swap(&self, _batch: Swaps) -> Reply<SwapReplies> {
        let message =
            "records are not written through a server; release and resolve them, or open the store itself";
        Reply::ready(Err(Error::new(ErrorKind::Invalid, message)))
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        let client = Arc::clone(&self.client);
        Reply::later(async move { load(&client, &ids).await })
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        let client = Arc::clone(&self.client);
        Reply::later(async move {
            let limit = u32::try_from(limit).unwrap_or(u32::MAX).clamp(1, SWEEP_RECORDS_MAX);
            let swept = client.post("/v1/store/sweep", &json!({ "limit": limit }), "semel stats").await;
            let SweptRecords { removed, more_left } = swept?;
            let swept = Swept { removed: usize::try_from(removed).unwrap_or(usize::MAX), more_left };
            // The contract wants a moment, and nothing is judged by that of a sweep.
            Ok(Answer::new(Timestamp::default(), swept))
        })
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        let client = Arc::clone(&self.client);
        Reply::later(async move { client.get::<ScannedRecords>(&scan_target(&scan)).await?.page() })
    }
}

/// The server answers for as many of the ids as fit one answer; the rest is asked for again.
async fn load(client: &Client, ids: &[RecordId]) -> Result<Answer<Vec<Loaded>>> {
    // Without any id, the store's now is still asked for.
    let nothing = [RecordId::from_bytes([0; 32])];
    let (mut left, mut records) =
        (if ids.is_empty() { &nothing[..] } else { ids }, Vec::with_capacity(ids.len()));
    let mut now = Timestamp::default();
    while !left.is_empty() {
        let asked = left.get(..LOAD_IDS_MAX.min(left.len())).unwrap_or(left);
        let loaded: LoadedRecords = client.get(&load_target(asked)).await?;
        let answered = loaded.records.len();
        if answered == 0 || answered > asked.len() {
            let message =
                format!("the server gave {answered} answers to {} questions; try again", asked.len());
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        now = Timestamp::from_micros(loaded.now_micros);
        records.extend(loaded.records.into_iter().map(LoadedRecord::loaded));
        left = left.get(answered..).unwrap_or_default();
    }
    records.truncate(ids.len());
    Ok(Answer::new(now, records))
}

fn load_target(ids: &[RecordId]) -> String {
    let ids: Vec<_> = ids.iter().map(|id| format!("id={id}")).collect();
    format!("/v1/store/load?{}", ids.join("&"))
}

fn scan_target(Scan { filter, after, limit }: &Scan) -> String {
    let mut pairs: Vec<(&str, String)> = vec![("limit", (*limit).clamp(1, SCAN_RECORDS_MAX).to_string())];
    pairs.extend(filter.scope.iter().map(|part| ("scope", part.to_string())));
    pairs.extend(filter.operation.iter().map(|text| ("operation", text.to_string())));
    pairs.extend(filter.name.iter().map(|text| ("name", text.to_string())));
    pairs.extend(filter.states.iter().map(|state| ("state", state.as_str().to_owned())));
    let before = filter.first_seen_before.map(|moment| moment.as_micros().to_string());
    pairs.extend(before.map(|micros| ("first_seen_before_micros", micros)));
    pairs.extend(after.map(|id| ("after", id.to_string())));
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    format!("/v1/store/scan?{}", pairs.join("&"))
}

/// Text as a value of a query.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// What a server says of its store beyond its records.
pub(super) struct ServerOperated {
    client: Arc<Client>,
    survives: String,
}

impl ServerOperated {
    pub(super) fn new(client: Arc<Client>, survives: String) -> Self {
        Self { client, survives }
    }

    async fn checked(&self) -> Result<CheckedStore> {
        self.client.get("/v1/store/check").await
    }
}

impl OperatedStore for ServerOperated {
    fn survives(&self) -> String {
        self.survives.clone()
    }

    fn check(&self) -> Pending<'_, Vec<Finding>> {
        Box::pin(async { Ok(self.checked().await?.findings.into_iter().map(Into::into).collect()) })
    }

    fn ready<'a>(&'a self, _store: &'a Arc<dyn Store>) -> Pending<'a, ()> {
        Box::pin(async {
            match self.checked().await?.not_ready {
                None => Ok(()),
                Some(why) => Err(Error::new(ErrorKind::Unavailable, why)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use semel::record::StateKind;
    use semel::store::Filter;

    use super::*;

    #[test]
    fn a_filter_is_asked_for_whole_and_no_value_can_add_another() {
        let filter = Filter {
            scope: vec!["a&limit=9".into(), "ü/%".into()],
            operation: Some("charge".into()),
            name: Some("order 7".into()),
            states: vec![StateKind::Held, StateKind::Running],
            first_seen_before: Some(Timestamp::from_micros(7)),
        };
        assert_eq!(
            scan_target(&Scan { filter, after: None, limit: 5_000 }),
            "/v1/store/scan?limit=1000&scope=a%26limit%3D9&scope=%C3%BC%2F%25&operation=charge&name=order%207&state=held\
             &state=running&first_seen_before_micros=7"
        );
    }
}
