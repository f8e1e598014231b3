//! `semel proxy`: safe retries for a service that is not changed.

use anyhow::{Result, bail};

use crate::proxy_plan::ProxyPlan;

pub(crate) async fn run(plan: &ProxyPlan) -> Result<()> {
    let settings = plan.settings()?;
    bail!("there is no proxy yet to listen on {}", settings.listen)
}
