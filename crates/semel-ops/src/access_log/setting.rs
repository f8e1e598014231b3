//! What is written of each request, as a setting.

use semel_config::value::Words;

/// What is written of each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// Nothing.
    Off,
    /// A line for people.
    #[default]
    Text,
    /// A line of JSON.
    Json,
}

/// The words of the setting `access_log`.
pub const ACCESS_LOG: &Words<AccessLog> =
    &[("text", AccessLog::Text), ("json", AccessLog::Json), ("off", AccessLog::Off)];
