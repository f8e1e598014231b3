//! The proxy before the API, on an embedded store in a folder that is gone afterwards.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use semel_ops::store_setting::StoreOverrides;
use semel_ops::store_url::Address;
use semel_proxy::config::{Admin, Config, Overrides};
use semel_proxy::{AccessLog, Proxy, ProxySettings};
use tempfile::TempDir;

/// What the proxy is told. A lease that is over soon, so that nobody waits long for what only a person can decide.
pub(super) const CONFIG: &str = "[rules]\nlease = \"1s\"\nlapse = \"hold\"\n";

/// A running proxy, and its folder.
pub(super) struct Front {
    proxy: Proxy,
    folder: TempDir,
}

impl Front {
    pub(super) async fn open(upstream: SocketAddr) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder for the store; is the disk full?")?;
        let settings = settings(upstream, &folder)?;
        let proxy = Proxy::start(settings).await?;
        Ok(Self { proxy, folder })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.proxy.listening()
    }

    /// Lets what runs finish, and clears up.
    pub(super) async fn close(self) -> Result<()> {
        self.proxy.drain().await;
        self.folder.close().context("cannot remove the folder of the store")
    }
}

fn settings(upstream: SocketAddr, folder: &TempDir) -> Result<ProxySettings> {
    let overrides = Overrides {
        upstream: Some(Overrides::upstream(&format!("http://{upstream}")).map_err(anyhow::Error::msg)?),
        listen: Some(([127, 0, 0, 1], 0).into()),
        store: StoreOverrides { store: Some(Address::File(folder.path().join("store"))), variable: None },
        admin: Some(Admin::Off),
        access_log: Some(AccessLog::Off),
        ..Overrides::default()
    };
    Ok(Config::parse(CONFIG, "the demo").map(|config| config.with_overrides(overrides))?.settings()?)
}
