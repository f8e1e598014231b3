//! The proxy as people run it: the real binary, before a service on loopback.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::layered::{runtime, serve};
use super::patience::until;
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;
use crate::binary::semel;

/// A running proxy. Dropped, it is killed.
pub(crate) struct Proxied {
    pub(crate) address: SocketAddr,
    pub(crate) shelf: Option<Shelf>,
    child: Child,
    written: Arc<Mutex<String>>,
    _folder: TempDir,
    /// Where the service runs.
    upstream: Option<Runtime>,
}

impl Proxied {
    pub(crate) async fn start(setup: &Setup, shelf: &Shelf, service: &Service) -> Self {
        let upstream = runtime();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let behind = listener.local_addr().expect("is bound");
        let router = service.router();
        upstream.spawn(async move { serve(listener, router).await });
        let mut proxied = Self::before(&format!("http://{behind}"), setup, shelf).await;
        proxied.upstream = Some(upstream);
        proxied
    }

    /// The proxy before something that may not even be there.
    pub(crate) async fn before(upstream: &str, setup: &Setup, shelf: &Shelf) -> Self {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let file = folder.path().join("semel.toml");
        let top = format!(
            "listen = \"127.0.0.1:0\"\nadmin = \"off\"\nupstream = \"{upstream}\"\nstore = \"{}\"\n",
            shelf.url()
        );
        std::fs::write(&file, setup.text(&top)).expect("is written");
        let mut command = semel();
        command.args(["proxy", "--config"]).arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let written = Arc::new(Mutex::new(String::new()));
        collect(child.stdout.take().expect("is piped"), &written);
        collect(child.stderr.take().expect("is piped"), &written);
        let address = until("the proxy to listen", async || {
            let text = written.lock().expect("nobody panicked").clone();
            let gone = child.try_wait().expect("is ours");
            assert!(gone.is_none(), "the proxy ended: {gone:?}\n{text}");
            listening(&text)
        });
        let address = address.await;
        Self { address, shelf: None, child, written, _folder: folder, upstream: None }
    }

    pub(crate) async fn kill(mut self) {
        self.child.kill().expect("is ours");
        until("the proxy to die", async || self.child.try_wait().expect("is ours")).await;
    }

    pub(crate) fn freeze(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("is ours");
    }

    pub(crate) fn written(&self) -> String {
        self.written.lock().expect("nobody panicked").clone()
    }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        // It may be dead already, or stopped: a kill ends it all the same.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        if let Some(upstream) = self.upstream.take() {
            upstream.shutdown_background();
        }
    }
}

/// Gathers what a pipe brings, line by line, until it ends.
fn collect(pipe: impl Read + Send + 'static, written: &Arc<Mutex<String>>) {
    let written = Arc::clone(written);
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut written = written.lock().expect("nobody panicked");
            written.push_str(&line);
            written.push('\n');
        }
    });
}

/// Where it says that it listens.
fn listening(text: &str) -> Option<SocketAddr> {
    let line = text.lines().find(|line| line.to_lowercase().contains("listening"))?;
    let (_, after) = line.split_once("127.0.0.1:")?;
    let port = after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Some((Ipv4Addr::LOCALHOST, port).into())
}
