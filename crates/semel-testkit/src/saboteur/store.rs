//! The memory store with a fault in it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use semel::clock::Timestamp;
use semel::record::{Keep, Record, State, Version};
use semel::store::{
    Answer, Loaded, MemoryStore, Page, Reply, Scan, Store, Swap, SwapReplies, SwapReply, Swaps, Swept,
};
use semel::{RecordId, Result};

use super::fault::{Fault, LoadFault, Numbering};
use super::swap;

/// A memory store that breaks one promise.
pub struct Sabotaged(Arc<Tampered>);

/// The store, its fault, and what the fault has to remember.
pub(super) struct Tampered {
    pub(super) inner: MemoryStore,
    fault: Fault,
    ledger: Mutex<Ledger>,
    answers: AtomicU64,
}

/// What a fault has to remember.
#[derive(Default)]
pub(super) struct Ledger {
    /// What keep was asked for first.
    keeps: HashMap<RecordId, Keep>,
    /// The version before the first one of a record's present life.
    bases: HashMap<RecordId, u64>,
    /// Which record a text was first seen with.
    texts: HashMap<String, RecordId>,
    /// Which records there were once.
    pub(super) seen: HashSet<RecordId>,
    /// Who may write a record.
    pub(super) locks: HashMap<RecordId, Arc<tokio::sync::Mutex<()>>>,
}

impl Sabotaged {
    pub(super) fn new(fault: Fault) -> Self {
        let (inner, ledger, answers) = (MemoryStore::new(), Mutex::default(), AtomicU64::new(0));
        Self(Arc::new(Tampered { inner, fault, ledger, answers }))
    }
}

impl Tampered {
    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn current(&self, id: RecordId) -> Result<Option<Record>> {
        self.inner.load(vec![id]).await?.record()
    }

    /// One swap that goes right.
    pub(super) async fn swap_one(&self, swap: Swap) -> Result<SwapReply> {
        let replies = self.inner.swap([swap].into()).await?.value;
        Ok(replies.into_iter().next().unwrap_or(SwapReply::Full))
    }

    async fn swap_all(&self, batch: Vec<Swap>) -> Result<Vec<SwapReply>> {
        if let Fault::Swap(fault) = self.fault {
            return swap::all(self, fault, batch).await;
        }
        let mut replies = Vec::with_capacity(batch.len());
        for mut swap in batch {
            let id = swap.id();
            if let Some(other) = self.shared_with(&swap) {
                replies.push(SwapReply::Stale(self.current(other).await?.map(Arc::new)));
                continue;
            }
            swap.keep = self.kept(&swap);
            let new_life = swap.expected.is_none();
            swap.expected = swap.expected.map(|version| self.renumbered_back(id, version));
            let reply = self.swap_one(swap).await?;
            if let SwapReply::Swapped(record) = &reply
                && new_life
            {
                self.ledger().bases.insert(id, record.version.get() - 1);
            }
            replies.push(reply);
        }
        Ok(replies)
    }

    /// The other record that the swap's key is taken for, if it is.
    fn shared_with(&self, swap: &Swap) -> Option<RecordId> {
        let Fault::Shared(text) = self.fault else { return None };
        let first = *self.ledger().texts.entry(text(swap.next.key())).or_insert(swap.id());
        (first != swap.id()).then_some(first)
    }

    fn kept(&self, swap: &Swap) -> Keep {
        let Fault::Kept(keep) = self.fault else { return swap.keep };
        let before = self.ledger().keeps.get(&swap.id()).copied();
        self.ledger().keeps.entry(swap.id()).or_insert(swap.keep);
        keep(before, swap.keep)
    }

    async fn load_all(&self, mut ids: Vec<RecordId>) -> Result<Vec<Option<Record>>> {
        if let Fault::Load(LoadFault::Deduplicated) = self.fault {
            ids.dedup();
            ids.sort_unstable();
            ids.dedup();
        }
        if let Fault::Load(LoadFault::Counted) = self.fault {
            for id in &ids {
                swap::count(self, *id).await?;
            }
        }
        let mut found = self.inner.load(ids).await?.records()?;
        if let Fault::Load(LoadFault::Reversed) = self.fault {
            found.reverse();
        }
        if let Fault::Load(LoadFault::AbsentLeftOut) = self.fault {
            found.retain(Option::is_some);
        }
        Ok(found)
    }

    async fn sweep_some(&self, limit: usize) -> Result<Swept> {
        let limit = if let Fault::Swept(other) = self.fault { other(limit) } else { limit };
        let mut swept = self.inner.sweep(limit).await?.value;
        if let Fault::Told(tell) = self.fault {
            tell(&mut swept);
        }
        Ok(swept)
    }

    async fn scan_page(&self, mut scan: Scan) -> Result<Page> {
        if let Fault::Scan(alter) = self.fault {
            alter(&mut scan);
        }
        let states = scan.filter.states.clone();
        if let Fault::States(_) = self.fault {
            scan.filter.states.clear();
        }
        let Answer { now, value: mut page, .. } = self.inner.scan(scan).await?;
        if let Fault::States(shows) = self.fault {
            page.records.retain(|record| states.is_empty() || shows(&states, record, now));
        }
        if let Fault::Page(alter) = self.fault {
            alter(&mut page);
        }
        page.records.iter_mut().for_each(|record| self.show(Arc::make_mut(record)));
        Ok(page)
    }

    fn show(&self, record: &mut Record) {
        if let Fault::Shown(alter) = self.fault {
            alter(record);
        }
        if let Fault::Versions(numbering) = self.fault {
            let shown = self.renumbered(record.key.id(), numbering, record.version);
            if let State::Running(running) = &mut record.state
                && running.grant.fence == record.version
            {
                running.grant.fence = shown;
            }
            record.version = shown;
        }
    }

    fn renumbered(&self, id: RecordId, numbering: Numbering, version: Version) -> Version {
        Version::new(match numbering {
            Numbering::Shrinking => u64::MAX - version.get(),
            Numbering::Restarting => version.get() - self.ledger().bases.get(&id).copied().unwrap_or(0),
        })
    }

    fn renumbered_back(&self, id: RecordId, version: Version) -> Version {
        let Fault::Versions(numbering) = self.fault else { return version };
        Version::new(match numbering {
            Numbering::Shrinking => u64::MAX - version.get(),
            Numbering::Restarting => version.get() + self.ledger().bases.get(&id).copied().unwrap_or(0),
        })
    }

    async fn answer<T>(&self, value: T) -> Result<Answer<T>> {
        let now: Timestamp = self.inner.load(Vec::new()).await?.now;
        let count = self.answers.fetch_add(1, Ordering::SeqCst);
        let now = if let Fault::Now(tell) = self.fault { tell(now, count) } else { now };
        Ok(Answer::new(now, value))
    }
}

impl Store for Sabotaged {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let store = Arc::clone(&self.0);
        Reply::later(async move {
            let mut replies = store.swap_all(batch.into_vec()).await?;
            for reply in &mut replies {
                match reply {
                    SwapReply::Swapped(record) | SwapReply::Stale(Some(record)) => {
                        store.show(Arc::make_mut(record));
                    }
                    SwapReply::Stale(None)
                    | SwapReply::Full
                    | SwapReply::Damaged(_)
                    | SwapReply::Refused(_) => {}
                }
            }
            store.answer(replies.into()).await
        })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        let store = Arc::clone(&self.0);
        Reply::later(async move {
            let mut found = store.load_all(ids).await?;
            found.iter_mut().flatten().for_each(|record| store.show(record));
            let found = found.into_iter().map(|record| Ok(record.map(Arc::new))).collect();
            store.answer(found).await
        })
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        let store = Arc::clone(&self.0);
        Reply::later(async move {
            let swept = store.sweep_some(limit).await?;
            store.answer(swept).await
        })
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        let store = Arc::clone(&self.0);
        Reply::later(async move {
            let page = store.scan_page(scan).await?;
            store.answer(page).await
        })
    }
}
