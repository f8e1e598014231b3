//! The OpenAPI document, and a page for people that is made of it.
//!
//! - `serve`: answers with them. `page`: the page. `schema`: what a body may hold, in words.

mod page;
mod schema;
mod serve;

pub(super) use serve::{__path_document, __path_page, document, page, style};
