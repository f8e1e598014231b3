//! The claim server: the API and the dashboard on one port.
//!
//! ```
//! use semel_server::serve::{Server, ServerSettings};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> semel::Result<()> {
//! let server = Server::start(ServerSettings::in_memory()).await?;
//! println!("http://{} survives {}", server.listening(), server.survives());
//! let drained = server.drain().await;
//! # assert_eq!(drained.cut_off, 0);
//! # Ok(())
//! # }
//! ```
//!
//! - [`settings`](ServerSettings): what a server may be told. [`server`](Server): started, drained.
//! - `dispatch`: what every request goes through. `guard`: who may ask from where, and what browsers are told.
//! - `access_log`: what is noted of each request.
//! - [`app()`]: which path is answered by what; how the process is, and its metrics.
//! - [`waits`](Waits): requests that wait for something, and the end of all waiting.

mod access_log;
mod app;
mod dispatch;
mod guard;
mod server;
mod settings;
mod waits;

pub(crate) use access_log::{is_noting, note_caller, note_decision, note_key};
pub use app::app;
pub(crate) use app::{Gauges, Shown, shown};
pub(crate) use dispatch::Dispatch;
pub use semel_listen::Drained;
pub use server::{Server, Starting};
pub use settings::ServerSettings;
pub use waits::{Waiting, Waits};
