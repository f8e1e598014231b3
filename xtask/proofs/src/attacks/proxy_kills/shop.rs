//! The service behind the proxy: it charges, and says under `GET /charges?key=…` what became of a charge.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use test_http::{Line, Upstream};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

/// How long a charge takes before its effect, and between its effect and its answer.
const HALF_OF_THE_WORK: Duration = Duration::from_millis(4);

/// What was charged.
#[derive(Clone, Default)]
pub(super) struct Shop(Arc<Mutex<HashMap<String, Charges>>>);

/// What became of the charges under one key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Charges {
    /// Requests that are worked on.
    running: u32,
    /// Effects.
    pub(super) made: u32,
}

impl Shop {
    pub(super) async fn open(&self) -> Upstream {
        let shop = self.clone();
        Upstream::scripted(move |line| shop.clone().serve(line)).await
    }

    /// What was charged under a key.
    pub(super) fn charges(&self, key: &str) -> Charges {
        self.book().get(key).copied().unwrap_or_default()
    }

    fn book(&self) -> MutexGuard<'_, HashMap<String, Charges>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self, mut line: Line) {
        loop {
            let head = line.head().await;
            let Some(request) = Asked::read(&head) else { return };
            if request.body_bytes > 0 {
                line.bytes(request.body_bytes).await;
            }
            let (status, body) =
                if request.is_lookup { self.look_up(&request.key) } else { self.charge(request.key).await };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            if line.0.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// Charges to the end, whether or not the client is still there: in a task of its own, as a service with a database would.
    async fn charge(&self, key: String) -> (&'static str, String) {
        self.book().entry(key.clone()).or_default().running += 1;
        let shop = self.clone();
        let charging = tokio::spawn(async move {
            sleep(HALF_OF_THE_WORK).await;
            let made = shop.make(&key);
            sleep(HALF_OF_THE_WORK).await;
            ("201 Created", charge_json(&key, made))
        });
        charging.await.unwrap_or(("500 Internal Server Error", String::new()))
    }

    fn make(&self, key: &str) -> u32 {
        let mut book = self.book();
        let charges = book.entry(key.to_owned()).or_default();
        charges.running -= 1;
        charges.made += 1;
        charges.made
    }

    fn look_up(&self, key: &str) -> (&'static str, String) {
        match self.charges(key) {
            Charges { made: 0, running: 0 } => ("404 Not Found", String::new()),
            Charges { made: 0, .. } => ("409 Conflict", String::new()),
            Charges { made, .. } => ("200 OK", charge_json(key, made)),
        }
    }
}

/// A charge as clients see it: the number says which effect it was.
fn charge_json(key: &str, number: u32) -> String {
    format!("{{\"charge\":\"{key}\",\"number\":{number}}}")
}

/// A request as far as the service cares.
struct Asked {
    is_lookup: bool,
    key: String,
    body_bytes: usize,
}

impl Asked {
    fn read(head: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut fields = head.lines().filter_map(|line| line.split_once(':'));
            fields
                .find(|(found, _)| found.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim().to_owned())
        };
        let target = head.split(' ').nth(1)?;
        let looked_up = target.split_once("?key=").map(|(_, key)| key.to_owned());
        Some(Self {
            is_lookup: looked_up.is_some(),
            key: looked_up.or_else(|| field("idempotency-key"))?,
            body_bytes: field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0),
        })
    }
}
