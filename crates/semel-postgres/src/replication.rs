//! What is known to be on the synchronous standby. A primary that was restarted, or whose waiting commits were cancelled,
//! shows outcomes that its standby may lack: after a failover they are gone, and the key runs again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use semel::{Error, ErrorKind, Result};

use crate::servers::ServerIdentity;

/// What all connections of a store know of the standby.
#[derive(Default)]
pub(crate) struct Replication {
    /// Whether commits wait for a standby, by the settings that were found last.
    is_synchronous: AtomicBool,
    confirmed: Mutex<Option<Confirmed>>,
    /// How many barriers were begun.
    begun: AtomicU64,
    /// The number of the newest barrier that passed, and the server that it passed on. Locked while one is under way.
    passed: tokio::sync::Mutex<(u64, Option<ServerIdentity>)>,
}

/// Transactions of a server that are on its standby: all that are older than this one.
#[derive(Clone, Copy)]
struct Confirmed {
    server: Option<ServerIdentity>,
    before: u64,
}

/// What a barrier found: the server that it passed on, and the oldest transaction that was not over when it began.
pub(crate) struct Barrier {
    pub(crate) server: Option<ServerIdentity>,
    pub(crate) oldest_running: u64,
}

impl Replication {
    pub(crate) fn set_synchronous(&self, is_synchronous: bool) {
        self.is_synchronous.store(is_synchronous, Ordering::Release);
    }

    /// Whether what these transactions of a server wrote may be shown. Call it after they were seen, because a barrier that
    /// began before that proves nothing.
    ///
    /// Callers that come while a barrier is under way share the next one.
    pub(crate) async fn confirm<B: Future<Output = Result<Barrier>>>(
        &self,
        server: Option<ServerIdentity>,
        transactions: &[u32],
        barrier: impl FnOnce() -> B,
    ) -> Result<()> {
        if !self.is_synchronous.load(Ordering::Acquire) || self.are_confirmed(server, transactions) {
            return Ok(());
        }
        let begun_before = self.begun.load(Ordering::Acquire);
        let mut passed = self.passed.lock().await;
        if passed.0 > begun_before && passed.1 == server {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::AcqRel).saturating_add(1);
        let found = barrier().await.map_err(unconfirmed)?;
        *passed = (number, found.server);
        let confirmed = Confirmed { server: found.server, before: found.oldest_running };
        *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner) = Some(confirmed);
        if found.server == server {
            return Ok(());
        }
        let message = "the outcome was read from a server that is no longer the primary; ask again";
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    fn are_confirmed(&self, server: Option<ServerIdentity>, transactions: &[u32]) -> bool {
        let confirmed = *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        let confirmed = confirmed.filter(|confirmed| confirmed.server == server);
        transactions
            .iter()
            .all(|number| confirmed.is_some_and(|Confirmed { before, .. }| is_older(*number, before)))
    }
}

/// Whether the transaction with this number in a row is older than one with a whole number. Rows hold the lower half:
/// numbers up to 2,147,483,648 behind are older, all others newer, which costs a barrier at most.
fn is_older(number: u32, than: u64) -> bool {
    let [.., b0, b1, b2, b3] = than.to_be_bytes();
    u32::from_be_bytes([b0, b1, b2, b3]).wrapping_sub(number).cast_signed() > 0
}

fn unconfirmed(error: Error) -> Error {
    let message = "the stored outcome is not known to be on the synchronous standby, so it is not shown; ask again, and see \
                   whether the standby runs";
    Error::new(ErrorKind::Unavailable, message).caused_by(error)
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn passing(oldest_running: u64) -> Ready<Result<Barrier>> {
        ready(Ok(Barrier { server: None, oldest_running }))
    }

    #[test]
    fn numbers_of_transactions_are_compared_over_their_wraparound() {
        assert!(is_older(7, 8) && !is_older(8, 8) && !is_older(9, 8));
        assert!(is_older(u32::MAX, (1 << 32) + 5), "the lower half began anew");
        assert!(!is_older(5, u64::from(u32::MAX)), "the row is of the next round");
    }

    #[tokio::test]
    async fn a_barrier_is_needed_once_for_what_it_covers() {
        let replication = Replication::default();
        replication.set_synchronous(true);
        let barriers = AtomicUsize::new(0);
        for (transactions, expected) in [(&[7_u32][..], 1), (&[7, 8], 1), (&[9], 1), (&[10], 2), (&[], 2)] {
            let barrier = || {
                barriers.fetch_add(1, Ordering::Relaxed);
                passing(10)
            };
            replication.confirm(None, transactions, barrier).await.unwrap();
            assert_eq!(barriers.load(Ordering::Relaxed), expected, "{transactions:?}");
        }
    }

    #[tokio::test]
    async fn without_a_synchronous_standby_no_barrier_is_made() {
        let replication = Replication::default();
        replication.confirm(None, &[7], || async { panic!("a barrier") }).await.unwrap();
    }

    #[tokio::test]
    async fn a_barrier_that_does_not_pass_confirms_nothing() {
        let replication = Replication::default();
        replication.set_synchronous(true);
        let lost = || async { Err(Error::new(ErrorKind::Unknown, "no reply")) };
        let error = replication.confirm(None, &[7], lost).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(!replication.are_confirmed(None, &[7]));
    }

    #[tokio::test]
    async fn a_barrier_on_another_server_confirms_nothing() {
        let replication = Replication::default();
        replication.set_synchronous(true);
        let server = Some(ServerIdentity { system: 1, timeline: 1 });
        let error = replication.confirm(server, &[7], || passing(10)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(!replication.are_confirmed(server, &[7]));
    }

    #[tokio::test]
    async fn a_barrier_that_began_before_the_outcome_was_read_confirms_nothing() {
        let replication = Replication::default();
        replication.set_synchronous(true);
        let (go_on, wait) = tokio::sync::oneshot::channel::<()>();
        let under_way = replication.confirm(None, &[20], || async {
            wait.await.ok();
            passing(10).await
        });
        let barriers = AtomicUsize::new(0);
        let later = async {
            let barrier = || {
                barriers.fetch_add(1, Ordering::Relaxed);
                passing(10)
            };
            replication.confirm(None, &[20], barrier).await
        };
        let release = async { go_on.send(()) };
        let (first, second, _) = tokio::join!(under_way, later, release);
        first.unwrap();
        second.unwrap();
        assert_eq!(barriers.load(Ordering::Relaxed), 1, "the second caller needed a barrier of its own");
    }
}
