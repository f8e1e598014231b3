//! A store for cratestack-axum that is quicker than those it is published with: a map in this process, which forgets nothing.

use std::time::SystemTime;

use async_trait::async_trait;
use cratestack_core::{CratestackError, IdempotencyRecord, IdempotencyStore, ReservationOutcome};
use cratestack_sqlx::sqlx::types::Uuid;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

/// Keys of callers.
#[derive(Default)]
pub(super) struct MapStore(DashMap<(String, String), Kept>);

struct Kept {
    token: Uuid,
    request: [u8; 32],
    expires_at: SystemTime,
    answer: Option<Answer>,
}

#[derive(Clone)]
struct Answer {
    status: u16,
    headers: Vec<u8>,
    body: Vec<u8>,
}

fn id(principal: &str, key: &str) -> (String, String) {
    (principal.to_owned(), key.to_owned())
}

#[async_trait]
impl IdempotencyStore for MapStore {
    async fn reserve_or_fetch(
        &self,
        principal: &str,
        key: &str,
        request: [u8; 32],
        expires_at: SystemTime,
    ) -> Result<ReservationOutcome, CratestackError> {
        let found = match self.0.entry(id(principal, key)) {
            Entry::Vacant(vacant) => {
                let token = Uuid::new_v4();
                vacant.insert(Kept { token, request, expires_at, answer: None });
                return Ok(ReservationOutcome::Reserved { token });
            }
            Entry::Occupied(found) => found,
        };
        let kept = found.get();
        if kept.request != request {
            return Ok(ReservationOutcome::Conflict);
        }
        let Some(Answer { status, headers, body }) = kept.answer.clone() else {
            return Ok(ReservationOutcome::InFlight);
        };
        Ok(ReservationOutcome::Replay(IdempotencyRecord {
            principal_fingerprint: principal.to_owned(),
            key: key.to_owned(),
            request_hash: request,
            response_status: status,
            response_headers: headers,
            response_body: body,
            created_at: kept.expires_at,
            expires_at: kept.expires_at,
        }))
    }

    async fn complete(
        &self,
        principal: &str,
        key: &str,
        token: Uuid,
        status: u16,
        headers: &[u8],
        body: &[u8],
    ) -> Result<(), CratestackError> {
        if let Some(mut kept) = self.0.get_mut(&id(principal, key)).filter(|kept| kept.token == token) {
            kept.answer = Some(Answer { status, headers: headers.to_vec(), body: body.to_vec() });
        }
        Ok(())
    }

    async fn release(&self, principal: &str, key: &str, token: Uuid) -> Result<(), CratestackError> {
        self.0.remove_if(&id(principal, key), |_, kept| kept.token == token);
        Ok(())
    }
}
