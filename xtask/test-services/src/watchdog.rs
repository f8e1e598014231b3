//! A few lines of shell that outlive us: they stop a server and remove its folder, however we end.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};

/// Every line names the process to stop, an empty one that there is none; the end of input means that we are gone, or
/// that the server was dropped. PostgreSQL that was killed leaves a segment of shared memory, named in its pid file.
const SCRIPT: &str = r#"
pid=
while read -r line; do pid=$line; done
is_alive() { kill -0 "$pid" 2>/dev/null && ! grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null; }
if [ -n "$pid" ]; then
    kill -s "$2" "$pid" 2>/dev/null
    tries=0
    while is_alive && [ "$tries" -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
    if is_alive; then kill -s KILL "$pid" 2>/dev/null; sleep 0.2; fi
fi
if [ -f "$1/data/postmaster.pid" ]; then
    set -- "$1" $(sed -n 7p "$1/data/postmaster.pid")
    if [ -n "$3" ]; then ipcrm -m "$3" 2>/dev/null; fi
fi
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }
"#;

/// Who clears up after one server.
#[derive(Debug)]
pub(crate) struct Watchdog {
    process: Child,
    /// Closed when we are gone: that is what it waits for.
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Watches over a folder; `signal` is how its server is stopped.
    pub(crate) fn start(folder: &Path, signal: &str) -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(folder).arg(signal);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        // Of a group of its own: a Ctrl-C is for us, and it has to outlive that.
        let mut process = command.process_group(0).spawn().context("cannot start `sh`")?;
        let pipe = process.stdin.take();
        Ok(Self { process, pipe })
    }

    /// Says which process is to be stopped, if any.
    pub(crate) fn watch(&mut self, pid: Option<u32>) -> Result<()> {
        let line = pid.map_or_else(|| "\n".to_owned(), |pid| format!("{pid}\n"));
        let pipe = self.pipe.as_mut().context("the watchdog is gone already")?;
        pipe.write_all(line.as_bytes()).context("the watchdog of a server does not listen")
    }

    /// Has it clear up.
    pub(crate) fn release(&mut self) {
        self.pipe = None;
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.release();
        drop(self.process.wait());
    }
}
