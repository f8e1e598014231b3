//! What a running process says of itself: lines on standard error, and traces to a collector ([`otlp`]).

#[cfg_attr(not(feature = "otlp"), path = "telemetry/no_otlp.rs")]
mod otlp;

use anyhow::{Context, Result};
use http::{HeaderMap, Uri};
use tracing::{Level, Span};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use otlp::{Traces, join};

/// What collects spans.
type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// What a running process says of itself.
pub(crate) struct Telemetry {
    traces: Option<Traces>,
}

impl Telemetry {
    /// From now on, warnings and audited actions go to standard error, and spans to the collector if there is one.
    pub(crate) fn start(service: &'static str, collector: Option<&Uri>) -> Result<Self> {
        let traces = collector.map(|collector| Traces::start(service, collector)).transpose()?;
        let said = Targets::new()
            .with_target("semel", Level::WARN)
            .with_target("semel::audit", Level::INFO)
            // That a broken setting was mended is as good to know as that it broke.
            .with_target("semel::store::settings_watch", Level::INFO);
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .with_target(false)
            .with_filter(said);
        tracing_subscriber::registry()
            .with(traces.as_ref().map(Traces::layer))
            .with(lines)
            .try_init()
            .context("this process already says what it does elsewhere")?;
        Ok(Self { traces })
    }

    /// What joins the span of a request to the trace that it belongs to, if spans go anywhere.
    pub(crate) fn join_trace(&self) -> Option<fn(&Span, &HeaderMap)> {
        self.traces.is_some().then_some(join as fn(&Span, &HeaderMap))
    }

    /// Sends the last spans.
    pub(crate) async fn end(self) {
        if let Some(traces) = self.traces {
            traces.end().await;
        }
    }
}
