//! What the service was asked: how often for each key, and with which bytes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::request::Request;

/// One call under a key.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its number: no two calls have the same.
    pub serial: u64,
    /// When it came.
    pub began_at: Instant,
    /// When it was answered, or its caller was gone.
    pub ended_at: Option<Instant>,
}

/// One request as it was read.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Path and query.
    pub target: String,
    /// Its body, as far as it came.
    pub body: Vec<u8>,
    /// Whether it came to its end.
    pub is_whole: bool,
    /// Why others might read it in another way.
    pub faults: Vec<String>,
    /// Its head, byte for byte.
    pub raw: Vec<u8>,
}

#[derive(Default)]
struct Book {
    serial: u64,
    calls: HashMap<String, Vec<Call>>,
    /// How many heads came under each key, whether or not their bodies followed.
    begun: HashMap<String, u32>,
    seen: Vec<Seen>,
}

/// What the service was asked.
#[derive(Default)]
pub struct Ledger(Mutex<Book>);

impl Ledger {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A head came.
    pub(super) fn begin(&self, request: &Request) {
        let Some(key) = request.field("idempotency-key") else { return };
        *self.book().begun.entry(key).or_default() += 1;
    }

    /// A whole request came: its number.
    pub(super) fn call(&self, request: &Request) -> u64 {
        let mut book = self.book();
        book.serial += 1;
        let serial = book.serial;
        if let Some(key) = request.field("idempotency-key") {
            let call = Call { serial, began_at: Instant::now(), ended_at: None };
            book.calls.entry(key).or_default().push(call);
        }
        serial
    }

    /// It was answered, or its caller is gone.
    pub(super) fn end(&self, request: &Request, serial: u64) {
        let Some(key) = request.field("idempotency-key") else { return };
        let mut book = self.book();
        let calls = book.calls.entry(key).or_default();
        if let Some(call) = calls.iter_mut().find(|call| call.serial == serial) {
            call.ended_at = Some(Instant::now());
        }
    }

    pub(super) fn see(&self, seen: Seen) {
        self.book().seen.push(seen);
    }

    /// The calls under a key, in their order.
    pub fn calls(&self, key: &str) -> Vec<Call> {
        self.book().calls.get(key).cloned().unwrap_or_default()
    }

    /// How often the service was at least begun to be asked under a key.
    pub fn begun(&self, key: &str) -> u32 {
        self.book().begun.get(key).copied().unwrap_or_default()
    }

    /// How many keys it was asked for, and how many of them more than once.
    pub fn keys(&self) -> (usize, usize) {
        let book = self.book();
        (book.calls.len(), book.calls.values().filter(|calls| calls.len() > 1).count())
    }

    /// Every request with this in its head, in order.
    pub fn seen(&self, mark: &str) -> Vec<Seen> {
        let is_in = |raw: &[u8]| raw.windows(mark.len()).any(|here| here == mark.as_bytes());
        let has_mark = |seen: &&Seen| mark.is_empty() || is_in(&seen.raw);
        self.book().seen.iter().filter(has_mark).cloned().collect()
    }
}
