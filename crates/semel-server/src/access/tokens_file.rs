//! The file that tokens are kept in: who may write it can make tokens, so nobody else may.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use semel_config::Errors;

use super::tokens::Tokens;
use crate::config;

/// More than a file of tokens can need.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// What others, and the group, may do.
const WRITABLE_BY_OTHERS: u32 = 0o022;
const READABLE_BY_OTHERS: u32 = 0o004;

/// Tokens, and what is to be said about the file that they are in.
#[derive(Debug)]
pub struct FromFile {
    /// Who may ask.
    pub tokens: Tokens,
    /// What is not wrong, but not as it should be.
    pub warning: Option<String>,
}

impl Tokens {
    /// The tokens in this text. The name is for errors.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        config::tokens(text, name)
    }

    /// The tokens in this file.
    pub fn read(path: &Path) -> Result<FromFile, Errors> {
        let name = path.display().to_string();
        let wrong = |message: String| Errors::whole(&name, message);
        let (text, mode) = text(path)
            .map_err(|error| wrong(format!("cannot be read: {error}; name the file with --tokens")))?;
        if mode & WRITABLE_BY_OTHERS != 0 {
            let message =
                "may be written by others, who could make tokens of their own; run `chmod go-w` on it";
            return Err(wrong(message.to_owned()));
        }
        let is_open = mode & READABLE_BY_OTHERS != 0;
        let warning = is_open.then(|| {
            format!("{name} may be read by everybody on this machine; digests forge nothing, but run `chmod o-r` on it")
        });
        Ok(FromFile { tokens: Self::parse(&text, &name)?, warning })
    }
}

/// What the file holds, and who may do what with it: both of the one file that was opened.
fn text(path: &Path) -> io::Result<(String, u32)> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.len() > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 16 MiB"));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok((text, about.permissions().mode()))
}
