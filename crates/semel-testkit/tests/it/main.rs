//! The suite, turned on itself: a store that keeps its promises passes, and each saboteur fails.

mod conformance;
mod saboteur;
