//! `semel proxy`: safe retries for a service that is not changed.

use anyhow::Result;
use semel_server::proxy::Proxy;

use crate::proxy_plan::ProxyPlan;
use crate::terminal::out;

pub(crate) async fn run(plan: &ProxyPlan) -> Result<()> {
    let proxy = Proxy::start(plan.settings()?).await?;
    out::line(&format!("Listening on {}.", proxy.listening()))?;
    tokio::signal::ctrl_c().await?;
    proxy.drain().await;
    Ok(())
}
