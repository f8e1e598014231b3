//! A store behind a bad network: asks and replies that are late, lost or doubled.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use semel::store::{Answer, Loaded, Page, Reply, Scan, Store, SwapReplies, Swaps, Swept};
use semel::{Error, ErrorKind, RecordId};

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the store answers, at once if it can.
    None,
    /// The ask and the reply each take this long.
    Delay(Duration),
    /// The store is not reached and says so: nothing happened.
    Refuse,
    /// The ask is lost on its way; the caller cannot tell that from a lost reply.
    LoseAsk(Duration),
    /// The store does what it was asked, and the reply is lost.
    LoseReply(Duration),
    /// The ask arrives, and once more this much later, when nobody waits for it any more.
    Double(Duration),
}

/// Which method is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the methods of a store")]
pub enum Call {
    Swap,
    Load,
    Sweep,
    Scan,
}

type Choose = Box<dyn FnMut(Call) -> Fault + Send>;

/// A store that can only be reached through faults, chosen call by call.
#[derive(Clone)]
pub struct FaultyStore {
    store: Arc<dyn Store>,
    choose: Arc<Mutex<Choose>>,
}

impl FaultyStore {
    /// Puts faults between a store and its callers; `choose` is asked before each call.
    pub fn new(store: Arc<dyn Store>, choose: impl FnMut(Call) -> Fault + Send + 'static) -> Self {
        Self { store, choose: Arc::new(Mutex::new(Box::new(choose))) }
    }

    /// Faults from a script; when it is at its end there are none.
    pub fn scripted(store: Arc<dyn Store>, script: impl IntoIterator<Item = Fault>) -> Self {
        let mut script: std::collections::VecDeque<_> = script.into_iter().collect();
        Self::new(store, move |_| script.pop_front().unwrap_or(Fault::None))
    }

    fn fault(&self, call: Call) -> Fault {
        let mut choose = self.choose.lock().unwrap_or_else(PoisonError::into_inner);
        (choose)(call)
    }

    fn through<T: Send + Unpin + 'static>(
        &self,
        call: Call,
        ask: impl Fn(&dyn Store) -> Reply<T> + Send + Sync + 'static,
    ) -> Reply<T> {
        let fault = self.fault(call);
        if fault == Fault::None {
            return ask(&*self.store);
        }
        let store = Arc::clone(&self.store);
        Reply::later(async move {
            match fault {
                Fault::None => ask(&*store).await,
                Fault::Delay(delay) => {
                    tokio::time::sleep(delay).await;
                    let reply = ask(&*store).await;
                    tokio::time::sleep(delay).await;
                    reply
                }
                Fault::Refuse => Err(Error::new(ErrorKind::Unavailable, "no way to the store; ask again")),
                Fault::LoseAsk(delay) => {
                    tokio::time::sleep(delay).await;
                    Err(lost())
                }
                Fault::LoseReply(delay) => {
                    let _: Result<Answer<T>, Error> = ask(&*store).await;
                    tokio::time::sleep(delay).await;
                    Err(lost())
                }
                Fault::Double(later) => {
                    let reply = ask(&*store).await;
                    tokio::spawn(async move {
                        tokio::time::sleep(later).await;
                        drop(ask(&*store).await);
                    });
                    reply
                }
            }
        })
    }
}

impl Store for FaultyStore {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        self.through(Call::Swap, move |store| store.swap(batch.clone()))
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        self.through(Call::Load, move |store| store.load(ids.clone()))
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.through(Call::Sweep, move |store| store.sweep(limit))
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.through(Call::Scan, move |store| store.scan(scan.clone()))
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Unknown, "the reply was lost; ask again")
}
