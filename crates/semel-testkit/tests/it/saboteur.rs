//! The suite finds every saboteur, and every promise has one.

use std::collections::HashSet;

use semel_testkit::conformance::promises;
use semel_testkit::saboteur::{Saboteur, saboteurs};

async fn is_found(saboteur: Saboteur) -> bool {
    let Some(promise) = promises().into_iter().find(|promise| promise.name == saboteur.breaks) else {
        return false;
    };
    promise.check(&saboteur.open()).await.is_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_saboteur_breaks_the_promise_that_it_names() {
    let trials: Vec<_> =
        saboteurs().into_iter().map(|saboteur| (saboteur.name, tokio::spawn(is_found(saboteur)))).collect();
    let mut unnoticed = Vec::new();
    for (name, trial) in trials {
        if !trial.await.unwrap() {
            unnoticed.push(name);
        }
    }
    assert!(unnoticed.is_empty(), "the suite did not notice: {unnoticed:?}");
}

#[test]
fn every_promise_has_a_saboteur() {
    let broken: HashSet<_> = saboteurs().into_iter().map(|saboteur| saboteur.breaks).collect();
    let unbroken: Vec<_> =
        promises().into_iter().map(|promise| promise.name).filter(|name| !broken.contains(name)).collect();
    assert!(unbroken.is_empty(), "nothing would show that these can fail: {unbroken:?}");
}

#[test]
fn no_two_saboteurs_share_a_name() {
    let names: HashSet<_> = saboteurs().into_iter().map(|saboteur| saboteur.name).collect();
    assert_eq!(names.len(), saboteurs().len());
}
