//! nginx as it is installed, as a plain reverse proxy: a folder, a configuration and a port of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process::{Server, free_port};

const TEMPLATE: &str = include_str!("nginx.conf");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessLog {
    Off,
    /// As it is by default: a line for each, unbuffered.
    On,
}

/// Starts it before the server on port `upstream`.
pub(super) fn start(upstream: u16, log: AccessLog, folder: &Path) -> Result<Server> {
    let port = free_port()?;
    let configuration = folder.join("nginx.conf");
    let folder_text = folder.to_str().context("the path of the folder is not UTF-8")?;
    let log = match log {
        AccessLog::Off => "off",
        AccessLog::On => "FOLDER/access.log",
    };
    let (listen, handler) = (port.to_string(), upstream.to_string());
    let values = [("PORT", listen.as_str()), ("UPSTREAM", &handler), ("LOG", log), ("FOLDER", folder_text)];
    let filled = values.iter().fold(TEMPLATE.to_owned(), |text, (name, value)| text.replace(name, value));
    fs::write(&configuration, filled)?;
    let configuration = configuration.to_str().context("the path of the folder is not UTF-8")?;
    Server::start(&["nginx", "-p", folder_text, "-c", configuration], port, folder)
}

pub(super) fn version() -> Result<String> {
    let output =
        Command::new("nginx").arg("-v").output().context("nginx was not found: install nginx-light")?;
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "`nginx -v` failed: {printed}");
    Ok(printed.trim().trim_start_matches("nginx version: nginx/").to_owned())
}
