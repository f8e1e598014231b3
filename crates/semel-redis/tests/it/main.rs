//! The store on real servers.

mod conformance;
