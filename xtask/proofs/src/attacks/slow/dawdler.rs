//! A connection that sends a byte now and then.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use test_http::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};

use crate::attacks::ask;

/// How long between two bytes.
const BETWEEN_BYTES: Duration = Duration::from_secs(2);

/// Where it dawdles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Where {
    /// A byte of the head now and then.
    Head,
    /// A byte of the body of a covered request now and then.
    Body,
    /// Nothing at all after half a body.
    Stalled,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It never was one: refused, or closed at once.
    Refused,
    /// Closed by the other side, after so long.
    Closed(Duration),
    /// Still open when told to stop.
    Open,
}

/// From which address the n-th comes: every other one from the same.
pub(super) fn source(n: usize) -> IpAddr {
    let last = if n.is_multiple_of(2) { 2 } else { u8::try_from(3 + n / 2 % 200).unwrap_or(3) };
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

/// Dawdles until it is closed, or told to stop. `room` bounds how many connect at once; `open` counts those that did.
pub(super) async fn dawdle(
    target: SocketAddr,
    from: IpAddr,
    path: &str,
    place: Where,
    room: Arc<Semaphore>,
    open: watch::Sender<usize>,
    mut stop: watch::Receiver<bool>,
) -> End {
    let connected = {
        let _place = room.acquire().await;
        Client::try_connect_from(from, target).await
    };
    let (start, drip) = parts(place, path);
    let Ok(mut connection) = connected else {
        open.send_modify(|open| *open += 1);
        return End::Refused;
    };
    let is_sent = connection.try_write(&start).await.is_ok();
    open.send_modify(|open| *open += 1);
    if !is_sent {
        return End::Refused;
    }
    let started_at = Instant::now();
    let mut bytes = [0_u8; 512];
    loop {
        tokio::select! {
            read = timeout(BETWEEN_BYTES, connection.stream().read(&mut bytes)) => match read {
                Ok(Ok(0) | Err(_)) => return End::Closed(started_at.elapsed()),
                // What it is told does not matter to it.
                Ok(Ok(_)) => {}
                Err(_) if drip.is_empty() => {}
                Err(_) => if connection.stream().write_all(&drip).await.is_err() {
                    return End::Closed(started_at.elapsed());
                },
            },
            () = async { drop(stop.wait_for(|stop| *stop).await) } => return End::Open,
        }
    }
}

/// What is sent at once, and what is sent now and then.
fn parts(place: Where, path: &str) -> (Vec<u8>, Vec<u8>) {
    let key = ask::new_key("slow");
    let head = |length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer caller-that-dawdles\r\n\
             Content-Type: application/json\r\nIdempotency-Key: {key}\r\nContent-Length: {length}\r\n\r\n{{\"a\":"
        )
    };
    match place {
        Where::Head => {
            (format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ").into_bytes(), b"a".to_vec())
        }
        Where::Body => (head(100_000).into_bytes(), b"1".to_vec()),
        Where::Stalled => (head(100_000).into_bytes(), Vec::new()),
    }
}
