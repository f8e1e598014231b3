//! The listener for those who run a process.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::health::{Health, not_ready};
use super::recorder::Scraped;

/// Connections at once. Nobody who runs a process needs more, and whoever else comes here gets no more.
const CONNECTIONS_MAX: usize = 64;
/// For a request's head, and for the next request on an idle connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait while no connection can be taken.
const OUT_OF_FILES: Duration = Duration::from_millis(50);

/// Answers on this listener until the process has stopped.
pub async fn serve(listener: TcpListener, health: impl Health, scraped: Option<Scraped>) {
    let summing_up = scraped.clone().map(|scraped| tokio::spawn(scraped.sum_up()));
    let asked = Arc::new(Asked { health, scraped });
    tokio::select! {
        () = asked.health.over() => {}
        () = accept(&listener, &asked) => {}
    }
    if let Some(task) = summing_up {
        task.abort();
    }
}

async fn accept<H: Health>(listener: &TcpListener, asked: &Arc<Asked<H>>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let asked = Arc::clone(asked);
                tokio::spawn(async move {
                    asked.connection(stream).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(OUT_OF_FILES).await,
        }
    }
}

/// What is asked, and answered.
struct Asked<H> {
    health: H,
    scraped: Option<Scraped>,
}

impl<H: Health> Asked<H> {
    async fn connection(&self, stream: TcpStream) {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service_fn(|request| self.answer(request)));
        tokio::select! {
            // Whoever went away is not missed.
            _ = connection => {}
            () = self.health.over() => {}
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return Ok(text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n"));
        }
        Ok(match request.uri().path() {
            "/healthz" => text(StatusCode::OK, "alive\n"),
            "/readyz" => match not_ready(&self.health).await {
                None => text(StatusCode::OK, "ready\n"),
                Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
            },
            "/metrics" => self.metrics(),
            _ => text(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n"),
        })
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        let Some(scraped) = &self.scraped else {
            return text(StatusCode::NOT_FOUND, "this program sends its metrics elsewhere\n");
        };
        self.health.measure();
        text(StatusCode::OK, scraped.text())
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
