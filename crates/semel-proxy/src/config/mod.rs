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
//! - [`source`](Config): a file's text. [`overrides`](Overrides): the command line, which goes before it.
//! - `root`, `profile`, `rules`, `route`, `callers`, `jwt`, `process`: what each part of a file means.
//! - `http_value`, `keywords`: how values of HTTP and words are read.
//! - `render`: what it all means, as a file that means the same.

mod callers;
mod http_value;
mod jwt;
mod keywords;
mod overrides;
mod process;
mod profile;
mod render;
mod root;
mod route;
mod rules;
mod source;

pub use overrides::{Admin, Named, Overrides};
pub use source::Config;
