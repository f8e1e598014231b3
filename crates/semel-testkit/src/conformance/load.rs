//! Promises of a load.

use semel::record::Keep;
use semel::store::Store;

use super::trial::{Broken, promised};
use super::trial::{LONG, SHORT, Trial};
use crate::sample;

/// A load answers in the order of the ids: none for what is absent, and each time for what is asked for twice.
pub async fn load_answers_in_the_order_of_the_ids(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let (a, b) = (trial.put_new("order", LONG).await?, trial.put_new("order", LONG).await?);
    let absent = sample::key("order")?.id();
    let (a_id, b_id) = (a.key.id(), b.key.id());
    for ids in [vec![a_id, absent, b_id, a_id, absent], vec![b_id, b_id, a_id], vec![absent]] {
        let expected: Vec<_> = ids
            .iter()
            .map(|id| [&a, &b].into_iter().find(|record| record.key.id() == *id).cloned())
            .collect();
        let found = store.load(ids).await?.value;
        promised!(found == expected, "load answers in the order of the ids", "{found:?} for {expected:?}");
    }
    Ok(())
}

/// A load makes no version, moves no moment and extends no keep.
pub async fn load_changes_nothing(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let lasting = trial.put_new("look", LONG).await?;
    let brief = trial.put_new("look", Keep::For(SHORT)).await?;
    for _ in 0..5 {
        store.load(vec![lasting.key.id(), brief.key.id()]).await?;
    }
    let found = trial.load(lasting.key.id()).await?;
    promised!(found.as_ref() == Some(&lasting), "load changes nothing", "{found:?} for {lasting:?}");
    trial.outlive(&brief, SHORT).await?;
    let found = trial.load(brief.key.id()).await?;
    promised!(found.is_none(), "load extends no keep", "{found:?}");
    Ok(())
}
