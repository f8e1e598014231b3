//! From a `semel.toml`, and what the command line said, to the settings of a proxy.
//!
//! ```
//! use semel_proxy::config::Config;
//!
//! let file = "upstream = 'http://127.0.0.1:3000'\nlisen = '127.0.0.1:8080'\n\n[rules]\nlease = '25h'\n";
//! let errors = Config::parse(file, "semel.toml").and_then(|config| config.settings()).unwrap_err().to_string();
//! assert!(errors.contains("semel.toml:2:1: `lisen` is no setting here; did you mean `listen`?"));
//! assert!(errors.contains("semel.toml:5:9: `lease` is \"25h\"; write 1ms to 1d"));
//! ```
//!
//! - [`source`](Config): a file's text, and the command line, which goes [before it](Overrides).
//! - `root`, `profile`, `keys`, `callers`: what each part of a file means. `values`: how values and words are read.
//! - `render`: what it all means, as a file that means the same. [`summary`](Summary): the same in four lines.

mod callers;
mod keys;
mod profile;
mod render;
mod root;
mod source;
mod summary;
mod values;

pub use source::{Admin, Config, Named, Overrides, TokensCheck};
pub use summary::Summary;
