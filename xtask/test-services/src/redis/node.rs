//! One Redis process, whatever part it plays.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;

use crate::place::{Place, find_program};
use crate::poll;
use crate::process::Process;

/// How often another port is tried if somebody took ours between a look and the start.
const STARTS: u32 = 5;
const CONFIG: &str = "redis.conf";

/// A `redis-server` process.
#[derive(Debug)]
pub(super) struct Node {
    process: Process,
    args: &'static [&'static str],
}

impl Node {
    /// Starts `redis-server` with durable settings and these.
    pub(super) fn start(take: fn() -> Result<Place>, own: &[(&str, &str)]) -> Result<Self> {
        Self::start_as(take, &[], |place| text(place, own))
    }

    /// Starts `redis-server` with a file of settings and arguments.
    pub(super) fn start_as(
        take: fn() -> Result<Place>,
        args: &'static [&'static str],
        config: impl Fn(&Place) -> String,
    ) -> Result<Self> {
        let mut tries = 0_u32;
        loop {
            let place = take()?;
            let text = config(&place);
            // A kill is as good a stop as any: what it has is not needed any more.
            let mut node = Self { process: Process::new(place, "KILL")?, args };
            node.process.place.write(CONFIG, &text)?;
            tries = tries.saturating_add(1);
            match node.resume() {
                Ok(()) => return Ok(node),
                Err(_) if tries < STARTS && node.process.place.lost_its_port() => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.process.place.port
    }

    pub(super) fn folder(&self) -> &Path {
        &self.process.place.folder
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.is_running()
    }

    pub(super) fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Stops it where it is: it answers nothing, and its connections stay open.
    pub(super) fn freeze(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Lets it go on after a freeze.
    pub(super) fn thaw(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Starts it again on the same folder and port, and waits until it has read its file and answers.
    pub(super) fn resume(&mut self) -> Result<()> {
        let program = program()?;
        let mut command = self.process.place.user.command(&program);
        command.arg(self.folder().join(CONFIG)).args(self.args);
        let port = self.port();
        // Not just anybody's answer on this port: whoever answers must be the process that was started.
        let process_id = |pid: u32| format!("process_id:{pid}");
        self.process.start(command, |pid| {
            let server = ask_text(port, &["INFO", "server"])?;
            let is_ours = server.lines().any(|line| line == process_id(pid));
            Ok(is_ours && !ask_text(port, &["INFO", "persistence"])?.contains("loading:1"))
        })
    }

    pub(super) fn ask(&self, words: &[&str]) -> Result<Vec<String>> {
        ask(self.port(), words)
    }

    /// Waits until `INFO replication` has this line.
    pub(super) fn until_replication(&self, line: &str) -> Result<()> {
        poll::until(&format!("`{line}` on port {}", self.port()), || {
            let info = ask_text(self.port(), &["INFO", "replication"])?;
            Ok(info.lines().any(|found| found == line).then_some(()))
        })
    }
}

/// Where `redis-server` is.
pub(super) fn program() -> Result<PathBuf> {
    find_program("redis-server").context("redis-server is not installed: apt-get install redis-server")
}

/// A server that does not answer within this time hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// How deep a reply may be nested; ours are at most three deep.
const DEPTH_MOST: u8 = 8;

/// Asks the server on this port. The reply's texts and numbers come in the order they are in, however they are nested;
/// what is nil is left out.
pub(super) fn ask(port: u16, words: &[&str]) -> Result<Vec<String>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&request(words))?;
    let mut found = Vec::new();
    read(&mut BufReader::new(stream), &mut found, DEPTH_MOST)
        .with_context(|| format!("`{}` on port {port}", words.join(" ")))?;
    Ok(found)
}

/// The same for a reply that is one text.
pub(super) fn ask_text(port: u16, words: &[&str]) -> Result<String> {
    Ok(ask(port, words)?.into_iter().next().unwrap_or_default())
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}

fn read(from: &mut impl BufRead, found: &mut Vec<String>, depth: u8) -> Result<()> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).context("the connection was closed")?;
    match kind {
        "+" | ":" => found.push(rest.to_owned()),
        "-" => bail!("{rest}"),
        "$" => {
            // Nil has the length -1.
            if let Ok(length) = rest.parse::<usize>() {
                let mut bytes = vec![0; length.saturating_add(2)];
                from.read_exact(&mut bytes)?;
                bytes.truncate(length);
                found.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        "*" => {
            ensure!(depth > 0, "a reply that is nested too deep");
            for _ in 0..rest.parse::<usize>().unwrap_or(0) {
                read(from, found, depth.saturating_sub(1))?;
            }
        }
        _ => bail!("no reply of Redis: {line}"),
    }
    Ok(())
}

/// When Redis syncs what it appended to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFsync {
    /// Before it answers.
    Always,
    /// Every second; a power cut loses what came since.
    EverySecond,
    /// When the operating system likes to.
    Never,
}

impl AppendFsync {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::EverySecond => "everysec",
            Self::Never => "no",
        }
    }
}

/// Settings in the order they are given; of two for one name Redis takes the last.
pub(super) fn text(place: &Place, own: &[(&str, &str)]) -> String {
    let (port, folder) = (place.port.to_string(), place.folder.to_string_lossy());
    let durable = [
        ("port", port.as_str()),
        ("bind", "127.0.0.1"),
        ("dir", folder.as_ref()),
        ("daemonize", "no"),
        ("appendonly", "yes"),
        ("appendfsync", AppendFsync::Always.word()),
        ("maxmemory-policy", "noeviction"),
        // The appended file holds everything; snapshots would only get in the way of measurements.
        ("save", ""),
        // A replica is served at once, and found to be gone soon.
        ("repl-diskless-sync-delay", "0"),
        ("repl-timeout", "10"),
    ];
    let line = |(name, value): &(&str, &str)| {
        let value = if value.is_empty() { "\"\"" } else { value };
        format!("{name} {value}\n")
    };
    durable.iter().chain(own).map(line).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reply: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        read(&mut reply.as_bytes(), &mut found, DEPTH_MOST).map(|()| found)
    }

    #[test]
    fn replies_are_read_however_they_are_nested() {
        assert_eq!(of("+PONG\r\n").unwrap(), ["PONG"]);
        assert_eq!(of("*3\r\n:1\r\n$-1\r\n*1\r\n$4\r\na\r\nb\r\n").unwrap(), ["1", "a\r\nb"]);
        assert_eq!(of("-LOADING it\r\n").unwrap_err().to_string(), "LOADING it");
        assert!(of("").is_err());
        assert!(of(&"*1\r\n".repeat(20)).is_err());
    }
}
