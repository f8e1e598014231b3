//! The proxy as people run it: the real binary, before a service on loopback.

use std::net::SocketAddr;

use rustix::process::Signal;
use test_http::Proxy;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::layered::{runtime, serve};
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;
use crate::binary::semel;

/// A running proxy. Dropped, it is killed.
pub(crate) struct Proxied {
    pub(crate) address: SocketAddr,
    pub(crate) shelf: Option<Shelf>,
    proxy: Option<Proxy>,
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
        let config = setup.text(&format!("upstream = \"{upstream}\"\nstore = \"{}\"\n", shelf.url()));
        let proxy = Proxy::with_config(&mut semel(), &config).await.expect("the proxy starts");
        Self { address: proxy.address, shelf: None, proxy: Some(proxy), upstream: None }
    }

    fn proxy(&self) -> &Proxy {
        self.proxy.as_ref().expect("runs until it is killed")
    }

    pub(crate) fn kill(mut self) {
        self.proxy.take().expect("runs").kill().expect("is ours");
    }

    pub(crate) fn freeze(&self) {
        self.proxy().signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.proxy().signal(Signal::CONT);
    }

    pub(crate) fn written(&self) -> String {
        self.proxy().lines().join("\n")
    }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        drop(self.proxy.take());
        if let Some(upstream) = self.upstream.take() {
            upstream.shutdown_background();
        }
    }
}
