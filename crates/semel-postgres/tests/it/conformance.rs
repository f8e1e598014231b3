//! The suite that every store passes.

use crate::server::open;

semel_testkit::conformance!(open);
