//! Promises that different keys never share a record.

use semel::Key;
use semel::store::Store;

use super::trial::{Broken, promised};
use super::trial::{LONG, Trial};
use crate::sample;

/// Keys that read the same when joined, and are split otherwise, have records of their own.
pub async fn keys_that_are_split_otherwise_are_apart(store: &dyn Store) -> Result<(), Broken> {
    let u = sample::unique("split");
    let ab = format!("{u}ab");
    apart(
        store,
        &[
            Key::scoped([&*u, "ab"], "c", "d")?,
            Key::scoped([&*u], "ab", "cd")?,
            Key::scoped([&*u], "a", "bcd")?,
            Key::scoped([&*u, "a"], "bc", "d")?,
            Key::scoped([&*u, "a", "b"], "c", "d")?,
            Key::scoped([&*ab], "c", "d")?,
            Key::new(&ab, "cd")?,
            Key::new(&u, "abcd")?,
        ],
    )
    .await
}

/// The same operation and name under two tenants are two records.
pub async fn tenants_are_apart(store: &dyn Store) -> Result<(), Broken> {
    let name = sample::unique("name");
    let (one, two) = (sample::unique("tenant"), sample::unique("tenant"));
    apart(
        store,
        &[
            Key::new("charge", &name)?,
            Key::scoped([&*one], "charge", &name)?,
            Key::scoped([&*two], "charge", &name)?,
            Key::scoped([&*one, &*two], "charge", &name)?,
            Key::scoped([&*two, &*one], "charge", &name)?,
        ],
    )
    .await
}

/// Names that a short digest, a case fold or a trimmed column takes for one have records of their own.
pub async fn names_that_look_alike_are_apart(store: &dyn Store) -> Result<(), Broken> {
    let tenant = sample::unique("alike");
    let mut keys = Vec::new();
    for name in
        ["8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ", "case", "CASE", "a b", "a  b", "é", "e\u{301}"]
    {
        keys.push(Key::scoped([&*tenant], "charge", name)?);
    }
    apart(store, &keys).await
}

async fn apart(store: &dyn Store, keys: &[Key]) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let mut records = Vec::new();
    for key in keys {
        records.push(trial.put(key, LONG).await?);
    }
    for record in &records {
        let found = trial.load(record.key.id()).await?;
        promised!(found.as_ref() == Some(record), "different keys have records of their own", "{found:?}");
    }
    Ok(())
}
