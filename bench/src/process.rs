//! Second processes: this program once more, for a task or as a server, or another program as a server.
//!
//! A server ends when its value is dropped, and when this process ends, however it does: the input of its watchdog is
//! closed then.
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use axum::Router;
use axum::serve::ListenerExt;

use crate::callers::runtime;
use crate::folder::workspace;
use crate::report::{Page, Sample};
use crate::timing::Stopwatch;

const WATCHDOG: &str = include_str!("watchdog.sh");
const START_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn this_program() -> Result<Command> {
    Ok(Command::new(std::env::current_exe().context("cannot find this program again")?))
}

/// Runs this program with these arguments, and reads the samples that it prints.
pub(crate) fn samples_of<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> Result<Vec<Sample>> {
    let output = this_program()?.args(arguments).stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "a second process failed: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("a second process did not print JSON")
}

/// The other side of [`samples_of`].
pub(crate) fn print_samples(samples: &[Sample]) -> Result<()> {
    println!("{}", serde_json::to_string(samples)?);
    Ok(())
}

pub(crate) struct Server {
    pub(crate) port: u16,
    child: Child,
}

impl Server {
    /// Starts this program with these arguments and a port, on which it must [`serve`].
    pub(crate) fn of_this_program(arguments: &[&str], folder: &Path) -> Result<Self> {
        let (program, port) = (std::env::current_exe()?, free_port()?);
        let program = program.to_str().context("the path of this program is not UTF-8")?;
        Self::start(&[&[program], arguments, &[&port.to_string()]].concat(), port, folder)
    }

    /// Starts a program that listens on this port; its output goes to `log` in the folder.
    pub(crate) fn start(command: &[&str], port: u16, folder: &Path) -> Result<Self> {
        let log = folder.join("log");
        let (output, errors) = (File::create(&log)?, File::options().append(true).open(&log)?);
        let mut watched = Command::new("sh");
        watched.args(["-c", WATCHDOG, "sh"]).args(command);
        watched.stdin(Stdio::piped()).stdout(output).stderr(errors);
        // In a process group of its own: Ctrl-C is for this process alone, and closes the input of the watchdog.
        let child = watched.process_group(0).spawn().context("cannot start `sh`")?;
        let server = Self { port, child };
        let watch = Stopwatch::start();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if watch.elapsed() > START_TIMEOUT {
                let printed = fs::read_to_string(&log).unwrap_or_default();
                bail!("`{}` does not listen; its output:\n{printed}", command.join(" "));
            }
            sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// The watchdog, whose processor time includes that of the server and its children.
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

pub(crate) fn serve(port: u16, router: impl FnOnce() -> Result<Router>) -> Result<()> {
    runtime(thread::available_parallelism().map_or(2, usize::from))?.block_on(async {
        // An engine has tasks of its own, so it is made in the runtime, and before the port answers.
        let router = router()?;
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        Ok(axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), router).await?)
    })
}

pub(crate) struct SemelProgram(PathBuf);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SemelStore {
    Memory,
    File,
}

impl SemelProgram {
    /// The program at this path, by default that of a release build of the main workspace.
    pub(crate) fn new(path: Option<&Path>) -> Self {
        let target = || {
            let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
            named.unwrap_or_else(|| workspace().join("../target"))
        };
        Self(path.map_or_else(|| target().join("release/semel"), Path::to_path_buf))
    }

    /// Names the folder that the program is in, which cargo calls after the profile.
    pub(crate) fn describe(&self, page: &mut Page) {
        let folder = self.0.parent().and_then(Path::file_name).unwrap_or_default();
        page.fact("folder of the semel program", folder.to_string_lossy());
    }

    pub(crate) fn is_there(&self) -> bool {
        self.0.is_file()
    }

    /// A subcommand on the store in this folder; `None` if the program is not there.
    pub(crate) fn command(&self, arguments: &[&str], folder: &Path) -> Option<Command> {
        let mut command = Command::new(&self.0);
        command.args(arguments).arg("--store").arg(format!("file:{}", folder.display()));
        self.is_there().then_some(command)
    }

    /// Starts a subcommand that listens, with a store in this folder.
    pub(crate) fn start(&self, arguments: &[&str], store: SemelStore, folder: &Path) -> Result<Server> {
        let Self(program) = self;
        let advice = "run `cargo build --release -p semel-cli`, or name another with --semel";
        ensure!(program.is_file(), "{} does not exist: {advice}", program.display());
        let program = program.to_str().context("the path of the program is not UTF-8")?;
        let port = free_port()?;
        let store = match store {
            SemelStore::Memory => "memory:".to_owned(),
            SemelStore::File => format!("file:{}", folder.join("store").display()),
        };
        let listen = format!("127.0.0.1:{port}");
        let line = [&[program], arguments, &["--listen", &listen, "--store", &store]].concat();
        Server::start(&line, port, folder)
    }
}

/// A port that is free now, for programs that cannot find one themselves.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Serves in this process, until it ends.
#[cfg(test)]
pub(crate) fn served(router: Router) -> u16 {
    let (send_port, port) = std::sync::mpsc::channel();
    thread::spawn(move || {
        runtime(1).unwrap().block_on(async {
            let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            send_port.send(listener.local_addr().unwrap().port()).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    port.recv().unwrap()
}
