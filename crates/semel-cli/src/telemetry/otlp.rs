//! Traces over OTLP: spans go to a collector, one request of HTTP/1.1 each time, on a connection of its own.

use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tracing::{Level, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};

use super::SpanLayer;

/// For all of one request.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// A collector has little to say.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Where spans go, below the collector's own address.
const TRACES: &str = "v1/traces";

/// Spans on their way to a collector.
pub(super) struct Traces(SdkTracerProvider);

impl Traces {
    pub(super) fn start(service: &'static str, collector: &Uri) -> Result<Self> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client { runtime: Handle::current() })
            .with_endpoint(traces(collector))
            .build()
            .context("spans cannot be sent")?;
        let resource = Resource::builder().with_service_name(service).build();
        Ok(Self(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build()))
    }

    pub(super) fn layer(&self) -> SpanLayer {
        let layer = tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("semel"))
            // A request's span gets its name when its route is known, which is after it was entered.
            .with_context_activation(false);
        let spans = Targets::new()
            .with_target("semel", Level::INFO)
            // Only there to name the request in lines of the log.
            .with_target("semel::request", LevelFilter::OFF);
        Box::new(layer.with_filter(spans))
    }

    /// Sends the last spans.
    pub(super) async fn end(self) {
        // It waits for the collector, which is asked on this runtime.
        let ended = tokio::task::spawn_blocking(move || self.0.shutdown()).await;
        if let Ok(Err(error)) = ended {
            eprintln!("the last spans did not get to the collector: {error}");
        }
    }
}

/// Joins a span to the trace that a request's `traceparent` names, if it names one.
pub(super) fn join(span: &Span, headers: &HeaderMap) {
    let context = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    if context.span().span_context().is_valid() {
        // A span that nobody collects has no parent, either.
        let _ = span.set_parent(context);
    }
}

/// A client for one collector. It is asked from a thread without a runtime, and works on this one.
#[derive(Debug)]
struct Client {
    runtime: Handle,
}

/// Where a collector takes spans.
fn traces(collector: &Uri) -> String {
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
