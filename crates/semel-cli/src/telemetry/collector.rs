//! How spans get to a collector: one request of HTTP/1.1 each time, on a connection of its own.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// For all of one request.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// A collector has little to say.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Where spans go, below the collector's own address.
const TRACES: &str = "v1/traces";

/// A client for one collector. It is asked from a thread without a runtime, and works on this one.
pub(super) struct Client {
    runtime: Handle,
}

impl Client {
    pub(super) fn new(runtime: Handle) -> Self {
        Self { runtime }
    }
}

/// Where a collector takes spans.
pub(super) fn traces(collector: &Uri) -> String {
    let base = collector.to_string();
    format!("{}/{TRACES}", base.trim_end_matches('/'))
}

impl HttpClient for Client {
    fn send_bytes<'a, 'f>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        // Timers and sockets are the runtime's: nothing of it is made on this thread.
        let sent = self.runtime.spawn(async { timeout(SEND_TIMEOUT, send(request)).await });
        Box::pin(async move {
            let answered = sent.await?.unwrap_or_else(|_| Err(anyhow!("it did not answer in time")));
            answered.map_err(|error| {
                tracing::warn!("semel: spans did not get to the collector: {error:#}");
                error.into()
            })
        })
    }
}

async fn send(request: Request<Bytes>) -> Result<Response<Bytes>> {
    let (mut head, body) = request.into_parts();
    let host = head.uri.host().context("a collector without a host")?.to_owned();
    let port = head.uri.port_u16().unwrap_or(80);
    let authority = head.uri.authority().context("a collector without a host")?.as_str().parse()?;
    head.headers.insert(http::header::HOST, authority);
    head.uri = head.uri.path_and_query().context("a collector without a path")?.as_str().parse()?;
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let answer = sender.send_request(Request::from_parts(head, Full::new(body)));
    // The connection lasts for this one request: nobody drives it after that.
    let (answer, body) = tokio::select! {
        ended = connection => return Err(ended.err().map_or_else(|| anyhow!("it hung up"), Into::into)),
        answer = async {
            let (head, body) = answer.await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            anyhow::Ok((head, body.map_err(|error| anyhow!("{error}"))?.to_bytes()))
        } => answer?,
    };
    ensure!(answer.status.is_success(), "it answered {}", answer.status);
    Ok(Response::from_parts(answer, body))
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_go_below_the_collectors_address() {
        for base in ["http://127.0.0.1:4318", "http://127.0.0.1:4318/"] {
            assert_eq!(traces(&base.parse().expect("is a URL")), "http://127.0.0.1:4318/v1/traces");
        }
        assert_eq!(traces(&"http://h/otlp".parse().expect("is a URL")), "http://h/otlp/v1/traces");
    }
}
