//! The claim server as people run it, and how it is asked.
//!
//! - [`process`](Server): the binary. [`token`](Token): who may ask. [`ask`](Ask), [`answer`](Answer), [`client`](Client): HTTP/1.1 as bytes.

mod answer;
mod ask;
mod client;
mod process;
mod token;

pub use answer::Answer;
pub use ask::{Ask, encoded};
pub use client::Client;
pub use process::Server;
pub use token::{Role, Token};
