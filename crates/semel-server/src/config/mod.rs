//! From a `semel.toml`, and what the command line said, to everything that a proxy or a server is told.
//!
//! Two steps: what was written, with the place of every name and value; then what it means. A file is judged as a whole: all that
//! is wrong with it is told at once, by line.
//!
//! ```
//! use semel_server::config::Config;
//!
//! let file = "upstream = 'http://127.0.0.1:3000'\nlisen = '127.0.0.1:8080'\n\n[rules]\nlease = '25h'\n";
//! let errors = Config::parse(file, "semel.toml").and_then(|config| config.settings()).unwrap_err().to_string();
//! assert!(errors.contains("semel.toml:2:1: `lisen` is no setting here; did you mean `listen`?"));
//! assert!(errors.contains("semel.toml:5:9: `lease` is \"25h\"; write 1ms to 1d"));
//! ```
//!
//! - [`written`](Config): a file's text. [`overrides`](Overrides): the command line, which goes before it.
//! - [`faults`](Errors): what is wrong, and where. `nearest`: what may have been meant.
//! - `table`, `value`, `size`, `words`: how names and values are read.
//! - `root`, `profile`, `rules`, `route`, `callers`, `jwt`, `store`, `process`: what each part of a file means.
//! - [`server`](ServerMeaning): what it means for a claim server, `server_effective`: as a file that means the same.
//! - [`mod@tokens`]: a file of its own, with who may ask.
//! - `effective`: what it all means, as a file that means the same.

mod callers;
mod effective;
mod faults;
mod http_value;
mod jwt;
mod nearest;
mod overrides;
mod process;
mod profile;
mod root;
mod route;
mod rules;
mod server;
mod server_effective;
mod size;
mod store;
mod table;
mod tokens;
mod value;
mod words;
mod written;

pub use faults::{Errors, Fault};
pub use overrides::{Admin, Named, Overrides};
pub use server::{ServerMeaning, ServerOverrides};
pub use tokens::tokens;
pub use written::Config;
