//! The suite, turned on itself: a store that keeps its promises passes, and each saboteur fails.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "an overflow fails the test that it happens in, as it should"
)]

#[cfg(test)]
mod clock;
#[cfg(test)]
mod concurrent;
mod conformance;
#[cfg(test)]
mod endurance;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod history;
#[cfg(test)]
mod lossy;
#[cfg(test)]
mod pausing;
mod saboteur;
mod second_store;
#[cfg(test)]
mod simulated_store;
#[cfg(test)]
mod simulator;
#[cfg(test)]
mod sweeping;
#[cfg(test)]
mod wire;
#[cfg(test)]
mod wrong;
