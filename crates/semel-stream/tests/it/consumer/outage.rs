//! Empty as yet.
