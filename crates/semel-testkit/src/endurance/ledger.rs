//! What all callers were told, and how that is held against a store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use semel::record::{PermitId, Record, State};
use semel::store::Store;
use semel::{Claim, Decision, Key, Outcome, Permit, RecordId, Result, Semel};
use tokio::task::JoinSet;

use super::account::{Account, Ending, Grant};
use super::judge::judge;
use super::load::engine;
use super::losses::{Losses, Wrong};

/// How many records are looked at in one round trip.
const LOADS_MAX: usize = 1_024;
/// How many keys are settled at the same time.
const SETTLES_MAX: usize = 64;

/// What all callers were told.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: HashMap<RecordId, Account>,
}

/// The ledger while callers write in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Book(Arc<Mutex<Ledger>>);

impl Book {
    pub(super) fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(ledger)))
    }

    /// Writes something down on the page of a key.
    pub(super) fn note(&self, key: &Key, note: impl FnOnce(&mut Account)) {
        let mut ledger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        note(ledger.accounts.entry(key.id()).or_insert_with(|| Account::new(key)));
    }

    pub(super) fn granted(&self, permit: &Permit) {
        let grant = Grant { permit_id: permit.id(), attempt: permit.attempt(), fence: permit.fence() };
        self.note(permit.key(), |account| {
            if !account.grants.contains(&grant) {
                account.grants.push(grant);
            }
        });
    }

    /// The ledger as it is, for when nobody writes in it any more.
    pub(super) fn close(&self) -> Ledger {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ledger {
    /// How many grants, outcomes and releases were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.accounts.values().map(Account::acknowledged).sum()
    }

    /// How many keys were asked for.
    pub fn keys(&self) -> usize {
        self.accounts.len()
    }

    /// Holds what was acknowledged against what the store has. Then ends every run that is left and replays it, to see
    /// that no key is stuck; that is written down too, so the same ledger can be held against the store again.
    pub async fn verify(&mut self, store: &Arc<dyn Store>) -> Result<Losses> {
        let mut losses = Losses { acknowledged: self.acknowledged(), ..Losses::default() };
        let ids: Vec<_> = self.accounts.keys().copied().collect();
        let mut unsettled = Vec::new();
        for ids in ids.chunks(LOADS_MAX) {
            let found = store.load(ids.to_vec()).await?.value;
            for (id, found) in ids.iter().zip(found) {
                let Some(account) = self.accounts.get(id) else { continue };
                let findings = judge(account, found.as_ref());
                losses.add(&id.short().to_string(), &findings);
                if findings.is_empty() && found.as_ref().is_none_or(|record| record.outcome().is_none()) {
                    unsettled.push((account.key.clone(), found));
                }
            }
        }
        self.settle(store, unsettled, &mut losses).await?;
        Ok(losses)
    }

    async fn settle(
        &mut self,
        store: &Arc<dyn Store>,
        mut unsettled: Vec<(Key, Option<Record>)>,
        losses: &mut Losses,
    ) -> Result<()> {
        let (semel, book) = (engine(store)?, Book::new(std::mem::take(self)));
        let mut settling = JoinSet::new();
        loop {
            while let Some((key, found)) = unsettled.pop_if(|_| settling.len() < SETTLES_MAX) {
                let (semel, book) = (semel.clone(), book.clone());
                settling.spawn(async move { (key.id(), settle(&semel, &book, &key, found).await) });
            }
            match settling.join_next().await {
                None => break,
                Some(Ok((_, Ok(())))) => {}
                Some(Ok((id, Err(why)))) => losses.add(&id.short().to_string(), &[(Wrong::Wedged, why)]),
                Some(Err(error)) => losses.add("a settling task", &[(Wrong::Wedged, error.to_string())]),
            }
        }
        *self = book.close();
        Ok(())
    }
}

/// What came of a key that was settled; the error says why it is stuck.
type Settled = std::result::Result<(), String>;

/// Goes on with whatever run is there, or begins one, ends it, and has its outcome replayed.
async fn settle(semel: &Semel, book: &Book, key: &Key, found: Option<Record>) -> Settled {
    let claim = |permit_id: Option<PermitId>| {
        let claim = Claim::new(key);
        semel.claim(match permit_id {
            Some(permit_id) => claim.permit_id(permit_id),
            None => claim,
        })
    };
    let running = found.as_ref().and_then(|record| match &record.state {
        State::Running(running) => Some(running.permit_id),
        State::Done(_) | State::Released(_) | State::Held(_) => None,
    });
    let permit = match claim(running).await {
        Ok(Decision::Run(permit)) => permit,
        other => return Err(format!("it cannot be claimed: {other:?}")),
    };
    book.granted(&permit);
    let outcome = Outcome::success(*b"settled");
    let ending = (permit.id(), Ending::Done(outcome.clone()));
    book.note(key, |account| account.settling.push(ending.clone()));
    permit.complete(outcome.clone()).await.map_err(|error| format!("it cannot be completed: {error:?}"))?;
    book.note(key, |account| account.settled.push(ending));
    match claim(None).await {
        Ok(Decision::Replay(replay)) if *replay.outcome() == outcome => Ok(()),
        other => Err(format!("it does not replay its outcome: {other:?}")),
    }
}
