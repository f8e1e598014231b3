//! What clients talk to: the layer in this process, or the running proxy.

use std::net::SocketAddr;
use test_http::{Answer, Client, Request};

use super::layered::Layered;
use super::proxied::Proxied;
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;

/// On which side a rule is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Layer,
    Proxy,
}

/// A front before the service.
pub(crate) struct Front {
    pub(crate) service: Service,
    side: Side,
}

enum Side {
    Layer(Layered),
    Proxy(Box<Proxied>),
}

impl Front {
    /// A front with a service and a store of its own.
    pub(crate) async fn start(kind: Kind, setup: Setup) -> Self {
        let shelf = Shelf::plain(kind);
        let mut front = Self::start_on(kind, &setup, &shelf, &Service::default()).await;
        front.keep(shelf);
        front
    }

    /// Another front before a service, on a store that is there.
    pub(crate) async fn start_on(kind: Kind, setup: &Setup, shelf: &Shelf, service: &Service) -> Self {
        let side = match kind {
            Kind::Layer => Side::Layer(Layered::start(setup, shelf, service).await),
            Kind::Proxy => Side::Proxy(Box::new(Proxied::start(setup, shelf, service).await)),
        };
        Self { service: service.clone(), side }
    }

    /// A front whose callers are authenticated: by the app, before the layer; or by the service, behind the proxy.
    pub(crate) async fn start_guarded(kind: Kind) -> Self {
        if kind == Kind::Proxy {
            return Self::start(kind, Setup::new()).await;
        }
        let (service, shelf) = (Service::default(), Shelf::plain(kind));
        let mut layered = Layered::guarded(&service, &shelf).await;
        layered.shelf = Some(shelf);
        Self { service, side: Side::Layer(layered) }
    }

    /// The proxy before something that may not even be there.
    pub(crate) async fn before(upstream: &str, setup: &Setup, shelf: &Shelf, service: &Service) -> Self {
        let side = Side::Proxy(Box::new(Proxied::before(upstream, setup, shelf).await));
        Self { service: service.clone(), side }
    }

    /// Holds on to the store for as long as the front lives.
    fn keep(&mut self, kept_in: Shelf) {
        match &mut self.side {
            Side::Layer(layered) => layered.shelf = Some(kept_in),
            Side::Proxy(proxied) => proxied.shelf = Some(kept_in),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match &self.side {
            Side::Layer(layered) => layered.address,
            Side::Proxy(proxied) => proxied.address,
        }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address()).await
    }

    /// Sends a request on a connection of its own.
    pub(crate) async fn send(&self, ask: &Request) -> Answer {
        self.connect().await.send(ask).await
    }

    /// Sends a request in the background.
    pub(crate) fn send_later(&self, ask: &Request) -> tokio::task::JoinHandle<Answer> {
        let (address, ask) = (self.address(), ask.clone());
        tokio::spawn(async move { Client::connect(address).await.send(&ask).await })
    }

    /// Ends it as nobody would wish: kill -9 for the proxy, and for the layer the loss of all its tasks.
    pub(crate) fn kill(self) {
        match self.side {
            Side::Layer(layered) => drop(layered),
            Side::Proxy(proxied) => proxied.kill(),
        }
    }

    /// Nothing in it moves from now on.
    pub(crate) async fn freeze(&mut self) {
        match &mut self.side {
            Side::Layer(layered) => layered.freeze().await,
            Side::Proxy(proxied) => proxied.freeze(),
        }
    }

    /// It goes on where it was.
    pub(crate) fn thaw(&mut self) {
        match &mut self.side {
            Side::Layer(layered) => layered.thaw(),
            Side::Proxy(proxied) => proxied.thaw(),
        }
    }

    /// Everything that it has written so far: lines of the proxy, events and spans of the layer.
    pub(crate) fn written(&self) -> String {
        match &self.side {
            Side::Layer(_) => super::listener::heard(),
            Side::Proxy(proxied) => proxied.written(),
        }
    }
}
