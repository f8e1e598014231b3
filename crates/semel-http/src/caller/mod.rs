//! Who a caller is.
//!
//! - [`principal`]: which part of a request says so. [`source`]: one such part.
//! - [`address`]: the address of the peer, also behind proxies.
//! - [`jwt`]: a claim of a verified bearer token. [`name`]: the caller's name in the scope of a key.
//! - [`unknown`]: why a caller is not known.

mod address;
#[cfg(feature = "jwt")]
mod jwt;
mod name;
mod principal;
mod source;
mod unknown;

pub use address::client_address;
#[cfg(feature = "jwt")]
pub use jwt::Jwt;
pub use name::Caller;
pub use principal::{PeerAddress, Principal};
