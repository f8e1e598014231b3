//! Where the metrics of this process go, until Prometheus comes for them.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::sync::watch;
use tokio::time::timeout;

use semel_listen::{Phase, phase};

/// Bounds of the histograms, in seconds: from a replay in memory to a slow upstream.
const SECONDS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];
/// How often what was recorded is summed up. Without it, histograms grow until somebody scrapes.
const SUM_UP_EVERY: Duration = Duration::from_secs(5);

/// The metrics of this process.
#[derive(Clone)]
pub struct Scraped(PrometheusHandle);

/// Installs the recorder of this process, once. `None` if the program installed one of its own, which then has them.
pub fn recorder() -> Option<Scraped> {
    static INSTALLED: OnceLock<Option<Scraped>> = OnceLock::new();
    INSTALLED.get_or_init(install).clone()
}

fn install() -> Option<Scraped> {
    let buckets =
        PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS);
    let handle = buckets.ok()?.install_recorder().ok()?;
    Some(Scraped(handle))
}

impl Scraped {
    pub(crate) fn text(&self) -> String {
        self.0.render()
    }

    /// Sums up what was recorded, now and then, for as long as the process serves.
    pub(crate) async fn sum_up(self, mut phase: watch::Receiver<Phase>) {
        while timeout(SUM_UP_EVERY, phase::over(&mut phase)).await.is_err() {
            self.0.run_upkeep();
        }
    }
}
