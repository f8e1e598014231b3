//! Pages for people on call, rendered here; a little JavaScript only for what is live.
//!
//! Keys, scopes, owners, reasons and outcomes are strangers' strings. Every page is made by `maud`, which escapes whatever it is
//! given; nothing here writes HTML by any other road, and no page holds a script or a style of its own.
//!
//! - `router`: which path is answered by what. `session`: who looks at a page, and forms; `login`: the way in and out.
//! - `frame`: what all pages share. `store_banner`: what they say while the store is not well. `answer`: a page as a response, and what stands on it if something went wrong.
//! - `overview`, `attention`, `keys`, `pipelines`: the pages. `parts`, `chart`: what they are made of. `query`: what a page was asked for.

mod answer;
mod attention;
mod chart;
mod frame;
mod keys;
mod login;
mod overview;
mod parts;
mod pipelines;
mod query;
mod router;
mod session;
mod store_banner;

pub use answer::not_found;
pub use router::router;
pub use session::OverTls;
pub(crate) use session::session_of;
