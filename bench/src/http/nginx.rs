//! nginx as it is installed, as a plain reverse proxy: a folder, a configuration and a port of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process::{Server, free_port};

/// Whether every request is logged.
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
    fs::write(&configuration, settings(folder_text, port, upstream, log))?;
    let configuration = configuration.to_str().context("the path of the folder is not UTF-8")?;
    Server::start(&["nginx", "-p", folder_text, "-c", configuration], port, folder)
}

/// The installed version.
pub(super) fn version() -> Result<String> {
    let output =
        Command::new("nginx").arg("-v").output().context("nginx was not found: install nginx-light")?;
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "`nginx -v` failed: {printed}");
    Ok(printed.trim().trim_start_matches("nginx version: nginx/").to_owned())
}

/// Connections to clients and to the upstream stay open for as long as a window lasts. Each worker has a queue of its own for
/// new connections, so that both have about half of them.
fn settings(folder: &str, port: u16, upstream: u16, log: AccessLog) -> String {
    let log = match log {
        AccessLog::Off => "off".to_owned(),
        AccessLog::On => format!("{folder}/access.log"),
    };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = temporary.map(|name| format!("    {name}_temp_path {folder}/{name};\n")).concat();
    format!(
        "daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    access_log {log};
{temporary}    keepalive_timeout 600s;
    keepalive_requests 1000000000;
    upstream handler {{
        server 127.0.0.1:{upstream};
        keepalive 256;
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port} reuseport;
        location / {{
            proxy_pass http://handler;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
        }}
    }}
}}
"
    )
}
