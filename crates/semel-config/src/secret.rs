//! Values that are not written in the file itself: in an environment variable, or in another file.

use crate::value::{Read, Value, wrong};

/// What an environment variable holds.
pub fn variable(value: &Value<'_>, name: &str) -> Read<String> {
    match std::env::var(name) {
        Ok(held) if !held.is_empty() => Ok(held),
        _ => wrong(
            value,
            format!(
                "names the environment variable {name}, which is not set; set it where the proxy is started"
            ),
        ),
    }
}

/// What a file with a secret holds, without the end of its last line.
pub fn secret_file(value: &Value<'_>, path: &str) -> Read<Vec<u8>> {
    match std::fs::read(path) {
        Ok(held) if !held.trim_ascii().is_empty() => Ok(held.trim_ascii_end().to_vec()),
        Ok(_) => wrong(value, format!("names \"{path}\", which is empty")),
        Err(error) => wrong(value, format!("names \"{path}\", which cannot be read: {error}")),
    }
}
