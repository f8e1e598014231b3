//! Everything delivered a hundred times, in no order, to four consumers: one effect each.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use rand::seq::SliceRandom;
use semel_stream::Pipeline;

use super::trial::{Effects, consume};
use crate::promises::{Broker, until};

const EVENTS: usize = 40;
const TIMES: usize = 100;
const CONSUMERS: usize = 4;
/// How many publish at once.
const PUBLISHERS: usize = 8;

/// Publishes everything a hundred times, and has four consumers read it.
pub async fn a_storm_makes_one_effect_each(broker: &impl Broker, pipeline: &Pipeline) {
    let ids: Vec<_> = (0..EVENTS).map(|number| format!("e{number}")).collect();
    let mut storm: Vec<_> = ids.iter().flat_map(|id| vec![id.clone(); TIMES]).collect();
    storm.shuffle(&mut rand::rng());
    join_all(storm.chunks(storm.len() / PUBLISHERS).map(|part| broker.publish_twins(part))).await;
    assert_eq!(broker.left().await, Some((EVENTS * TIMES) as u64));
    let effects = Effects::free();
    let runs: Vec<_> =
        (0..CONSUMERS).map(|_| consume(pipeline, broker.reader(broker.port()), &effects)).collect();
    until(async || effects.events() == EVENTS && broker.left().await == Some(0)).await;
    let mut reports = Vec::new();
    for run in runs {
        reports.push(run.stop().await);
    }
    effects.assert_once(&ids);
    // Control: it was a storm, and more than one stood in it.
    let delivered: u64 = reports.iter().map(|report| report.delivered).sum();
    assert!(delivered >= (EVENTS * TIMES) as u64, "{delivered} deliveries");
    let busy = reports.iter().filter(|report| report.delivered > 0).count();
    assert!(busy > 1, "one consumer got everything");
    assert_eq!(BTreeSet::from_iter(&storm).len(), EVENTS);
}
