//! The engine over the memory store, and over a bad network.

mod batching;
mod cancellation;
mod claiming;
mod duplicates;
mod handing_on;
mod heartbeat;
mod interleaving;
mod keys;
mod lapse;
mod lost_replies;
mod miscounting;
mod observing;
mod once;
mod operating;
mod outage;
mod replays;
mod scanning;
mod steps;
mod swap_loop;
mod sweeping;
mod telemetry;
mod together;
mod waiting;
