//! The layer in this process, around the service, on a runtime of its own that can be frozen and lost.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Response, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use semel::Semel;
use semel_http::{IdempotencyLayer, Probe, ProbeAnswer, ProbeRequest, Reply};
use semel_proxy::config::Config;
use test_http::encoded;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::listener;
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;

/// A served app with the layer. Dropped, its tasks are lost as with a process.
pub(crate) struct Layered {
    pub(crate) address: SocketAddr,
    pub(crate) shelf: Option<Shelf>,
    runtime: Option<Runtime>,
    thaw: Option<mpsc::Sender<()>>,
}

impl Layered {
    pub(crate) async fn start(setup: &Setup, shelf: &Shelf, service: &Service) -> Self {
        Self::wrapped(service, setup, shelf, |app| app).await
    }

    /// With authentication before the layer: added last, it runs first.
    pub(crate) async fn guarded(service: &Service, shelf: &Shelf) -> Self {
        let guard = service.clone();
        let authenticated = move |request: Request, next: Next| {
            let is_known = guard.authenticated(request.headers()).is_some();
            async move {
                if is_known { next.run(request).await } else { StatusCode::UNAUTHORIZED.into_response() }
            }
        };
        Self::wrapped(service, &Setup::new(), shelf, |app| app.layer(from_fn(authenticated))).await
    }

    /// The layer around the service, and something around the layer.
    async fn wrapped(
        service: &Service,
        setup: &Setup,
        shelf: &Shelf,
        wrap: impl FnOnce(Router) -> Router + Send + 'static,
    ) -> Self {
        let app = service.router();
        listener::listen();
        let text = setup.text("upstream = \"http://127.0.0.1:9\"\n");
        let settings = Config::parse(&text, "the test's").expect("is a config file");
        let mut settings = settings.settings().expect("is fine");
        settings.http.profile.rules.probe = setup.probe_path().map(|path| probe(path, service));
        let runtime = runtime();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("is bound");
        let (opened, ready) = (shelf.opening(), tokio::sync::oneshot::channel());
        runtime.spawn(async move {
            let semel = Semel::builder_shared(opened.await).build().expect("is fine");
            let layer = IdempotencyLayer::with_settings(semel, settings.principal, settings.http);
            let app = wrap(app.layer(layer.expect("is fine")));
            ready.0.send(()).expect("somebody waits");
            serve(listener, app).await;
        });
        ready.1.await.expect("the layer is built");
        Self { address, shelf: None, runtime: Some(runtime), thaw: None }
    }

    /// Blocks the only thread that its tasks have.
    pub(crate) async fn freeze(&mut self) {
        let (thaw, wait) = mpsc::channel::<()>();
        let (frozen, is_frozen) = tokio::sync::oneshot::channel();
        self.runtime.as_ref().expect("still runs").spawn(async move {
            frozen.send(()).expect("somebody waits");
            // The end of the channel thaws as well: a test that fails must not hang.
            let _thawed = wait.recv();
        });
        is_frozen.await.expect("is told");
        self.thaw = Some(thaw);
    }

    pub(crate) fn thaw(&mut self) {
        self.thaw = None;
    }
}

impl Drop for Layered {
    fn drop(&mut self) {
        self.thaw();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A function that asks the service under this path what became of a run.
fn probe(path: &str, service: &Service) -> Probe {
    let (path, service) = (path.to_owned(), service.clone());
    let ask = move |asked: ProbeRequest| {
        let path = path.replace("{key}", &encoded(&asked.key)).replace("{path}", asked.target.path());
        let request = Request::get(path).header("authorization", &asked.headers["authorization"]);
        let (request, service) = (request.body(Body::empty()).expect("is a request"), service.clone());
        async move {
            let (parts, body) = service.respond(request).await.into_parts();
            let body = to_bytes(body, usize::MAX).await.expect("is whole");
            match parts.status {
                status if status.is_success() => {
                    ProbeAnswer::Landed(Reply::from(Response::from_parts(parts, body)))
                }
                StatusCode::NOT_FOUND => ProbeAnswer::NotLanded,
                _ => ProbeAnswer::CannotTell,
            }
        }
    };
    Probe::new(ask).timeout(Duration::from_secs(1))
}

/// A runtime with one thread of its own.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("starts")
}

/// Serves, and tells the app who its peers are.
pub(crate) async fn serve(listener: TcpListener, app: Router) {
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).await.expect("serves for ever");
}
