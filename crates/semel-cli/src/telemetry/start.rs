//! Lines and traces, from start to end.

use anyhow::{Context, Result};
use http::{HeaderMap, Uri};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::{Level, Span};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::collector::{Client, traces};
use super::context;

/// What a running process says of itself.
pub(crate) struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// From now on, warnings and audited actions go to standard error, and spans to the collector if there is one.
    pub(crate) fn start(service: &'static str, collector: Option<&Uri>) -> Result<Self> {
        let provider = collector.map(|collector| provider(service, collector)).transpose()?;
        let said = Targets::new().with_target("semel", Level::WARN).with_target("semel::audit", Level::INFO);
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .with_filter(said);
        let spans = provider.as_ref().map(|provider| {
            tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("semel"))
                // A request's span gets its name when its route is known, which is after it was entered.
                .with_context_activation(false)
                .with_filter(Targets::new().with_target("semel", Level::INFO))
        });
        tracing_subscriber::registry()
            .with(lines)
            .with(spans)
            .try_init()
            .context("this process already says what it does elsewhere")?;
        Ok(Self { provider })
    }

    /// What joins the span of a request to the trace that it belongs to, if spans go anywhere.
    pub(crate) fn join_trace(&self) -> Option<fn(&Span, &HeaderMap)> {
        self.provider.is_some().then_some(context::join as fn(&Span, &HeaderMap))
    }

    /// Sends the last spans.
    pub(crate) async fn end(self) {
        let Some(provider) = self.provider else { return };
        // It waits for the collector, which is asked on this runtime.
        let ended = tokio::task::spawn_blocking(move || provider.shutdown()).await;
        if let Ok(Err(error)) = ended {
            eprintln!("the last spans did not get to the collector: {error}");
        }
    }
}

fn provider(service: &'static str, collector: &Uri) -> Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Client::new(Handle::current()))
        .with_endpoint(traces(collector))
        .build()
        .context("spans cannot be sent")?;
    let resource = Resource::builder().with_service_name(service).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}
