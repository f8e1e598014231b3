//! Promises of a scan: pages in the order of ids, complete, and without what was not asked for.

use std::sync::Arc;
use std::time::Duration;

use semel::machine::claim::Ask;
use semel::record::{Keep, Record, StateKind};
use semel::store::{Filter, Scan, Store};
use semel::{Key, Lapse, Outcome, RecordId};

use super::trial::{Broken, LONG, SHORT, Trial, at, promised};
use crate::sample;

/// How many records a walk goes through.
const RECORDS: usize = 25;
/// A lease that a test can wait out.
const LEASE: Duration = Duration::from_millis(5);

/// A walk through all pages shows every record once, in the order of their ids.
pub async fn a_scan_shows_every_record_once_in_order(store: &dyn Store) -> Result<(), Broken> {
    let (filter, ids) = population(store).await?;
    for limit in [1, 4, RECORDS, RECORDS * 2] {
        let shown: Vec<_> = walk(store, &filter, limit).await?.iter().map(|record| record.key.id()).collect();
        promised!(
            shown == ids,
            "a scan shows every record once, in the order of their ids",
            "{shown:?} instead of {ids:?} in pages of {limit}"
        );
    }
    Ok(())
}

/// A page that starts after an id shows only what comes after it.
pub async fn a_page_goes_on_after_where_the_last_ended(store: &dyn Store) -> Result<(), Broken> {
    let (filter, ids) = population(store).await?;
    for (at, id) in ids.iter().enumerate().step_by(5) {
        let scan = Scan { filter: filter.clone(), after: Some(*id), limit: RECORDS };
        let page = store.scan(scan).await?.value;
        let first = page.records.first().map(|record| record.key.id());
        let expected = ids.get(at + 1).copied();
        let short_page = first.is_none() && page.next.is_some();
        promised!(
            first == expected || short_page,
            "a page goes on right after where the last ended",
            "{first:?} instead of {expected:?}"
        );
    }
    Ok(())
}

/// A page holds no more records than its limit says.
pub async fn a_page_respects_its_limit(store: &dyn Store) -> Result<(), Broken> {
    let (filter, _) = population(store).await?;
    for limit in [1, 7, RECORDS - 1] {
        let page = store.scan(Scan { filter: filter.clone(), after: None, limit }).await?.value;
        let shown = page.records.len();
        promised!(shown <= limit, "a page holds at most its limit", "{shown} for {limit}");
        promised!(
            page.next.is_some(),
            "a page that is not the last says where to go on",
            "{shown} and no next"
        );
    }
    Ok(())
}

/// An empty filter shows a record in any state.
pub async fn an_empty_filter_hides_nothing(store: &dyn Store) -> Result<(), Broken> {
    for record in one_of_each_state(store, &sample::unique("all")).await? {
        let id = record.key.id();
        let scan = Scan { filter: Filter::default(), after: Some(before(id)), limit: 1 };
        let shown = store.scan(scan).await?.value.records;
        promised!(
            shown == [Arc::new(record.clone())],
            "an empty filter hides nothing",
            "{shown:?} without {record:?}"
        );
    }
    Ok(())
}

/// A scope shows the records of its tenant and of the parts below it, and no others.
pub async fn a_scope_shows_its_tenant_only(store: &dyn Store) -> Result<(), Broken> {
    let (tenant, name) = (sample::unique("tenant"), sample::unique("name"));
    let lookalike = format!("{tenant}x");
    let inside = [
        Key::scoped([&*tenant], "charge", &name)?,
        Key::scoped([&*tenant, "eu"], "charge", &name)?,
        Key::scoped([&*tenant, "eu", "de"], "charge", &name)?,
    ];
    let outside =
        [Key::scoped([&*lookalike], "charge", &name)?, Key::scoped(["eu", &*tenant], "charge", &name)?];
    put_all(store, &inside).await?;
    put_all(store, &outside).await?;
    let scope = |parts: &[&str]| Filter {
        scope: parts.iter().map(|part| (*part).into()).collect(),
        ..Filter::default()
    };
    shows(store, &scope(&[&*tenant]), &inside).await?;
    shows(store, &scope(&[&*tenant, "eu"]), inside.get(1..).unwrap_or_default()).await?;
    shows(store, &scope(&[&*tenant, "eu", "de", "no"]), &[]).await
}

/// An operation, or a name, shows the records that have it, and no others.
pub async fn an_operation_or_a_name_shows_its_own_only(store: &dyn Store) -> Result<(), Broken> {
    let (operation, name) = (sample::unique("op"), sample::unique("name"));
    let other = sample::unique("other");
    let same = Key::new(&operation, &name)?;
    let same_operation = Key::scoped(["deep"], &operation, &other)?;
    let same_name = Key::new(&other, &name)?;
    put_all(store, &[same.clone(), same_operation.clone(), same_name.clone()]).await?;
    let by_operation = Filter { operation: Some(operation.clone().into()), ..Filter::default() };
    shows(store, &by_operation, &[same.clone(), same_operation]).await?;
    let by_name = Filter { name: Some(name.clone().into()), ..Filter::default() };
    shows(store, &by_name, &[same.clone(), same_name]).await?;
    let by_both = Filter { name: Some(name.into()), ..by_operation };
    shows(store, &by_both, &[same]).await
}

/// States show the records that are in one of them, and no others.
pub async fn states_show_their_own_only(store: &dyn Store) -> Result<(), Broken> {
    let tenant = sample::unique("states");
    let records = one_of_each_state(store, &tenant).await?;
    let wanted = StateKind::ALL.iter().map(|word| vec![*word]);
    for states in wanted.chain([vec![StateKind::Done, StateKind::Held], StateKind::ALL.to_vec()]) {
        let keys: Vec<_> = records
            .iter()
            .filter(|record| states.contains(&record.state.kind()))
            .map(|record| record.key.clone())
            .collect();
        let filter = Filter { scope: vec![tenant.clone().into()], states, ..Filter::default() };
        shows(store, &filter, &keys).await?;
    }
    Ok(())
}

/// A run whose lease lapsed under `hold` is shown with what is held, and no longer with what runs. A lease that is good,
/// and one that lapsed under `rerun`, are shown with what runs.
pub async fn a_run_that_lapsed_under_hold_is_shown_as_held(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let tenant = sample::unique("lapsed");
    let run = async |name, lapse, lease| {
        let ask = Ask { lapse, lease, ..sample::ask(&Key::scoped([&*tenant], "run", name)?) };
        trial.write(at(None, sample::running(&ask)?)).await
    };
    let lapsed = run("lapsed under hold", Lapse::Hold, LEASE).await?;
    let good = run("good under hold", Lapse::Hold, sample::LONG).await?;
    let rerun = run("lapsed under rerun", Lapse::Rerun, LEASE).await?;
    trial.wait_past(rerun.changed_at.plus(LEASE)).await?;
    let [lapsed, good, rerun] = [lapsed, good, rerun].map(|record| record.key);
    let runs = vec![good.clone(), rerun.clone()];
    for (states, keys) in [
        (vec![StateKind::Held], vec![lapsed.clone()]),
        (vec![StateKind::Running], runs),
        (vec![StateKind::Running, StateKind::Held], vec![lapsed.clone(), good.clone(), rerun.clone()]),
        (vec![StateKind::Done, StateKind::Released], vec![]),
        (vec![], vec![lapsed, good, rerun]),
    ] {
        let filter = Filter { scope: vec![tenant.clone().into()], states, ..Filter::default() };
        shows(store, &filter, &keys).await?;
    }
    Ok(())
}

/// A moment shows the records that were first seen before it, and no others.
pub async fn a_moment_shows_what_was_seen_before_it(store: &dyn Store) -> Result<(), Broken> {
    let trial = Trial::of(store);
    let tenant = sample::unique("moments");
    let mut early: Vec<Key> = Vec::new();
    let mut filter = Filter { scope: vec![tenant.clone().into()], ..Filter::default() };
    for at in 0..4 {
        let key = Key::scoped([&*tenant], "seen", &at.to_string())?;
        let record = trial.put(&key, LONG).await?;
        filter.first_seen_before = Some(record.first_seen_at);
        shows(store, &filter, &early).await?;
        early.push(key);
        trial.wait_past(record.first_seen_at).await?;
    }
    Ok(())
}

/// Records of one tenant, and their ids in order.
async fn population(store: &dyn Store) -> Result<(Filter, Vec<RecordId>), Broken> {
    let tenant = sample::unique("scan");
    let keys: Result<Vec<_>, _> =
        (0..RECORDS).map(|at| Key::scoped([&*tenant], "scan", &at.to_string())).collect();
    let keys = keys?;
    put_all(store, &keys).await?;
    let mut ids: Vec<_> = keys.iter().map(Key::id).collect();
    ids.sort_unstable();
    Ok((Filter { scope: vec![tenant.into()], ..Filter::default() }, ids))
}

async fn put_all(store: &dyn Store, keys: &[Key]) -> Result<(), Broken> {
    for key in keys {
        Trial::of(store).put(key, LONG).await?;
    }
    Ok(())
}

async fn one_of_each_state(store: &dyn Store, tenant: &str) -> Result<Vec<Record>, Broken> {
    let mut records = Vec::new();
    for word in StateKind::ALL {
        let mut ask = sample::ask(&Key::scoped([tenant], "state", word.as_str())?);
        ask.lapse = Lapse::Hold;
        records.push(put_in(Trial::of(store), &ask, word).await?);
    }
    Ok(records)
}

async fn put_in(trial: Trial<'_>, ask: &Ask, word: StateKind) -> Result<Record, Broken> {
    use semel::machine::{claim::claim, settle};
    let running = trial.write(at(None, sample::running(ask)?)).await?;
    let now = running.changed_at;
    let write = match word {
        StateKind::Running => return Ok(running),
        StateKind::Done => settle::complete(Some(&running), ask.permit_id, &Outcome::success("1"), now).write,
        StateKind::Released => settle::release(Some(&running), ask.permit_id, "later", now).write,
        StateKind::Held => claim(Some(&running), &sample::ask(&ask.key), now.plus(ask.lease)).write,
    };
    let mut swap = at(Some(running.version), sample::written(write)?);
    swap.keep = Keep::Forever;
    trial.write(swap).await
}

/// Walks through all pages and compares them with the keys, in whichever order these come.
async fn shows(store: &dyn Store, filter: &Filter, keys: &[Key]) -> Result<(), Broken> {
    let mut expected: Vec<_> = keys.iter().map(Key::id).collect();
    expected.sort_unstable();
    let shown: Vec<_> = walk(store, filter, 3).await?.iter().map(|record| record.key.id()).collect();
    promised!(
        shown == expected,
        "a filter shows what fits it and nothing else",
        "{shown:?} instead of {expected:?} for {filter:?}"
    );
    Ok(())
}

async fn walk(store: &dyn Store, filter: &Filter, limit: usize) -> Result<Vec<Record>, Broken> {
    let mut records = Vec::new();
    let mut after = None;
    loop {
        let scan = Scan { filter: filter.clone(), after, limit };
        let page = store.scan(scan).await?.value;
        records.extend(page.records.into_iter().map(Arc::unwrap_or_clone));
        match page.next {
            None => return Ok(records),
            next if next > after => after = next,
            next => return Err(Broken::new("a walk moves on", format!("from {after:?} to {next:?}"))),
        }
    }
}

/// The id right before this one: nothing can stand between the two.
fn before(id: RecordId) -> RecordId {
    let mut bytes = *id.as_bytes();
    for byte in bytes.iter_mut().rev() {
        let (less, borrowed) = byte.overflowing_sub(1);
        *byte = less;
        if !borrowed {
            break;
        }
    }
    RecordId::from_bytes(bytes)
}

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
        let found = store.load(ids).await?.records()?;
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
