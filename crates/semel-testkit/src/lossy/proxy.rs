//! The way to a server, and what is to go wrong on it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::link::link;

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is handed on, and its answer handed back.
    None,
    /// The server answers, and the connection is cut instead of handing that back.
    LoseAnswer,
    /// The connection is cut before the server hears of it.
    DropRequest,
    /// It is handed on so much later.
    Delay(Duration),
}

/// A loopback address that leads to a server, and loses what it is told to. Gone when dropped.
pub struct LossyProxy {
    address: SocketAddr,
    way: Arc<Way>,
    accepting: JoinHandle<()>,
}

/// What all connections share.
#[derive(Default)]
pub(super) struct Way {
    faults: Mutex<Faults>,
    pub(super) forwarded: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) dropped: AtomicU64,
}

#[derive(Default)]
struct Faults {
    /// What happens once, and how many requests go well before that.
    once: Option<(u64, Fault)>,
    at_random: Option<(f64, StdRng)>,
}

impl LossyProxy {
    /// Opens a way to the server at `upstream`.
    pub async fn start(upstream: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, way) = (listener.local_addr()?, Arc::<Way>::default());
        let shared = Arc::clone(&way);
        let accepting = tokio::spawn(async move {
            // Dropped with this task, and then every connection is.
            let mut links = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                links.spawn(link(client, upstream, Arc::clone(&shared)));
                while links.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, way, accepting })
    }

    /// Where clients are to connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next request is handed on and done, and its answer is lost with the connection.
    ///
    /// A request is what a client sends in one go. If others are on their way on the same connection, their answers are
    /// lost with it.
    pub fn lose_next_answer(&self) {
        self.lose_answer_after(0);
    }

    /// The same, after so many requests that go well.
    pub fn lose_answer_after(&self, requests: u64) {
        self.way.faults().once = Some((requests, Fault::LoseAnswer));
    }

    /// The next request never arrives, and its connection is cut.
    pub fn drop_next_request(&self) {
        self.drop_request_after(0);
    }

    /// The same, after so many requests that go well.
    pub fn drop_request_after(&self, requests: u64) {
        self.way.faults().once = Some((requests, Fault::DropRequest));
    }

    /// The next request arrives so much later.
    pub fn delay_next_request(&self, delay: Duration) {
        self.way.faults().once = Some((0, Fault::Delay(delay)));
    }

    /// From now on answers are lost with this probability, as the seed says.
    pub fn lose_answers(&self, probability: f64, seed: u64) {
        let rng = StdRng::seed_from_u64(seed);
        self.way.faults().at_random = Some((probability.clamp(0.0, 1.0), rng));
    }

    /// From now on nothing goes wrong.
    pub fn lose_nothing(&self) {
        *self.way.faults() = Faults::default();
    }

    /// How many requests were handed on.
    pub fn forwarded(&self) -> u64 {
        self.way.forwarded.load(Ordering::Relaxed)
    }

    /// How many answers were lost after the server had given them.
    pub fn lost(&self) -> u64 {
        self.way.lost.load(Ordering::Relaxed)
    }

    /// How many requests never arrived.
    pub fn dropped(&self) -> u64 {
        self.way.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for LossyProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Way {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to become of the next request.
    pub(super) fn next_fault(&self) -> Fault {
        let mut faults = self.faults();
        match &mut faults.once {
            Some((0, fault)) => {
                let fault = *fault;
                faults.once = None;
                return fault;
            }
            Some((before, _)) => *before = before.saturating_sub(1),
            None => {}
        }
        let Some((probability, rng)) = &mut faults.at_random else { return Fault::None };
        if rng.random_bool(*probability) { Fault::LoseAnswer } else { Fault::None }
    }
}
