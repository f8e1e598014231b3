//! The loop: what it promises, on a store in memory unless a test says otherwise.

mod busy;
mod checkpoint;
mod dead_letter;
mod frontier;
mod missing_key;
mod order;
mod outage;
mod redelivery;
mod report;
mod requeue;
mod scene;
mod stopping;
mod streams;
mod systems;
mod work;
