//! Chromium without a window, told what to do over a pipe in the words of its own developer tools.
//!
//! - [`chromium`](Browser): the process. [`wire`]: messages to and from it. [`page`](Page): one tab, and what can be done in it.
//! - [`screen`](Screen): how large it is, and whether it is dark. [`watch`]: what must not happen in a page.

mod chromium;
mod page;
mod watch;
mod wire;

pub use chromium::Browser;
pub use page::Page;
pub use page::Screen;
