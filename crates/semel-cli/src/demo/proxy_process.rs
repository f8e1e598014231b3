//! `semel proxy` as a process of its own, which the demo kills and starts again at the same address.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep};

/// How long a start may take.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two attempts to connect to a proxy that starts.
const START_POLL: Duration = Duration::from_millis(10);

/// A proxy before the API. Dropping it kills its process.
pub(super) struct ProxyProcess {
    child: Child,
    config: PathBuf,
    log: PathBuf,
    pub(super) listening: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) store: PathBuf,
    pub(super) kills: u64,
}

impl ProxyProcess {
    /// Starts a proxy with its store, its configuration and its log in this folder.
    pub(super) async fn start(upstream: SocketAddr, folder: &Path) -> Result<Self> {
        let (listening, admin) = free_addresses().await?;
        let store = folder.join("store");
        let config = folder.join("proxy.toml");
        std::fs::write(&config, configuration(upstream, listening, admin, &store))
            .with_context(|| format!("cannot write {}", config.display()))?;
        let log = folder.join("proxy.log");
        let child = spawn(&config, &log)?;
        let mut proxy = Self { child, config, log, listening, admin, store, kills: 0 };
        proxy.ready().await?;
        Ok(proxy)
    }

    /// What the proxy is configured with, as a file.
    pub(super) fn configuration(&self) -> Result<String> {
        std::fs::read_to_string(&self.config)
            .with_context(|| format!("cannot read {}", self.config.display()))
    }

    /// Kills the proxy and starts it again, each time that this is wanted. Returns only if it does not start.
    pub(super) async fn die_and_return(&mut self, wanted: &mut UnboundedReceiver<()>) -> Result<()> {
        while wanted.recv().await.is_some() {
            self.child.kill().await.context("cannot kill the proxy")?;
            self.kills = self.kills.saturating_add(1);
            self.child = spawn(&self.config, &self.log)?;
            self.ready().await?;
            // Charges that the same kill cut off.
            while wanted.try_recv().is_ok() {}
        }
        std::future::pending().await
    }

    /// Kills the proxy for good.
    pub(super) async fn end(mut self) -> Result<()> {
        self.child.kill().await.context("cannot end the proxy")
    }

    async fn ready(&mut self) -> Result<()> {
        let until = Instant::now().checked_add(START_TIMEOUT).context("this clock is at its end")?;
        while TcpStream::connect(self.listening).await.is_err() {
            if self.child.try_wait()?.is_some() || Instant::now() > until {
                let said = std::fs::read_to_string(&self.log).unwrap_or_default();
                bail!("`semel proxy` did not start on {}: {}", self.listening, said.trim());
            }
            sleep(START_POLL).await;
        }
        Ok(())
    }
}

fn spawn(config: &Path, log: &Path) -> Result<Child> {
    let log = std::fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let program = std::env::current_exe().context("cannot find the program that runs")?;
    Command::new(program)
        .args(["proxy", "--config"])
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        // Ctrl-C in a terminal goes to a whole group; the demo ends its proxy itself.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .context("cannot start `semel proxy`")
}

/// Addresses for the proxy and its admin side. The proxy returns to them after a kill, so they are chosen here.
async fn free_addresses() -> Result<(SocketAddr, SocketAddr)> {
    let listen = || TcpListener::bind(("127.0.0.1", 0));
    let (first, second) = (listen().await, listen().await);
    let (first, second) = (first.context("cannot listen on 127.0.0.1")?, second?);
    Ok((first.local_addr()?, second.local_addr()?))
}

/// A lease that ends soon, so that a retry after a kill does not wait long.
fn configuration(upstream: SocketAddr, listening: SocketAddr, admin: SocketAddr, store: &Path) -> String {
    let store = store.display();
    format!(
        "upstream   = 'http://{upstream}'\n\
         listen     = '{listening}'\n\
         admin      = '{admin}'\n\
         store      = 'file:{store}'\n\
         access_log = 'off'\n\
         \n\
         [rules]\n\
         lease = '1s'\n\
         lapse = 'hold'\n\
         probe = {{ path = '/payments?key={{key}}', headers = ['authorization'] }}\n"
    )
}
