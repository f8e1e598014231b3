//! Pages for people on call, rendered here; a little JavaScript only for what is live.

mod router;

pub use router::router;
