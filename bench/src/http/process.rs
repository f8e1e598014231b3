//! Processes with a server in each: this program once more, or another one that is installed. They end with their value,
//! and when this process does, however it does: their input is closed then.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::stopwatch::Stopwatch;

/// Runs a program until its own input ends, and then tells it to stop. It is killed if it does not within five seconds.
const WATCHDOG: &str = r#"
"$@" </dev/null &
pid=$!
while read -r _; do :; done
kill -s TERM "$pid" 2>/dev/null
tries=0
while kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
kill -s KILL "$pid" 2>/dev/null
wait "$pid"
"#;
const PATIENCE: Duration = Duration::from_secs(20);

/// A server on a port of 127.0.0.1.
pub(crate) struct Server {
    pub(crate) port: u16,
    child: Child,
}

impl Server {
    /// This program, told by these words to serve something and to say on which port.
    pub(crate) fn of_this_program(words: &[&str]) -> Result<Self> {
        let program = std::env::current_exe().context("this program cannot be found again")?;
        let mut command = Command::new(program);
        command.args(words);
        // Of a group of its own: a Ctrl-C is for us alone, and closes its input.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn()?;
        let output = child.stdout.take().context("a process has an output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        match line.trim().parse() {
            Ok(port) => Ok(Self { port, child }),
            Err(_) => bail!("a server said {line:?} and no port; above is why ({})", child.wait()?),
        }
    }

    /// Another program, told to listen on this port; what it says goes to `log` in the folder.
    pub(crate) fn of_program(command: &[&str], port: u16, folder: &Path) -> Result<Self> {
        let log = folder.join("log");
        let (output, errors) = (File::create(&log)?, File::options().append(true).open(&log)?);
        let mut watched = Command::new("sh");
        watched
            .args(["-c", WATCHDOG, "sh"])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors);
        let child = watched.process_group(0).spawn().context("cannot start `sh`")?;
        let server = Self { port, child };
        let watch = Stopwatch::start();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if watch.elapsed() > PATIENCE {
                let said = fs::read_to_string(&log).unwrap_or_default();
                bail!("`{}` does not listen; it said:\n{said}", command.join(" "));
            }
            sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// Itself, or who watches over it: what it started is counted with it.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

/// A port that nobody has, for those who cannot find one themselves.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
