//! `semel check`: the settings of a store against its promise, and whether it takes claims.

use anyhow::{Context as _, Result, bail};
use semel::store::{Finding, Verdict};
use serde_json::json;

use crate::store_arg::StoreArg;
use crate::terminal::{Cell, Column, Table, out, style};

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl CheckArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let address = store.address()?;
        let store = store.open_to_check().await?;
        let findings = store.check().await?;
        let (survives, ready) = (store.survives(), store.ready().await);
        let broken = count(&findings, Verdict::Broken);
        if self.json {
            let finding = |Finding { setting, found, wanted, verdict }: &Finding| json!({ "setting": setting, "found": found, "wanted": wanted, "verdict": verdict.as_str() });
            out::json(&json!({
                "store": address.to_string(),
                "survives": survives,
                "kept": broken == 0,
                "ready": ready.is_ok(),
                "not_ready": ready.as_ref().err().map(ToString::to_string),
                "findings": findings.iter().map(finding).collect::<Vec<_>>(),
            }))?;
        } else {
            out::line(&format!("{address}\nWhat it acknowledges is to survive {survives}.\n"))?;
            table(&findings).print()?;
            out::line(&format!("\n{}", verdict(&findings)))?;
            if ready.is_ok() {
                out::line("It is ready: a new claim would be taken now.")?;
            }
        }
        ready.context("the store is not ready: a new claim would fail now")?;
        if broken > 0 {
            bail!("{broken} of {} break the promise: mend what is marked, then check again", findings.len());
        }
        Ok(())
    }
}

fn verdict(findings: &[Finding]) -> &'static str {
    match (count(findings, Verdict::Broken), count(findings, Verdict::Unreadable)) {
        (0, 0) => "Everything is as the promise needs it.",
        (0, _) => "Nothing breaks the promise, but not everything could be seen: look at what is marked.",
        _ => "The promise does not hold.",
    }
}

fn count(findings: &[Finding], verdict: Verdict) -> usize {
    findings.iter().filter(|finding| finding.verdict == verdict).count()
}

fn table(findings: &[Finding]) -> Table {
    let mut table = Table::new(vec![
        Column::whole("promise"),
        Column::whole("setting"),
        Column::elastic("found", 16),
        Column::elastic("needed", 16),
    ]);
    for finding in findings {
        let colour = match finding.verdict {
            Verdict::Kept => style::fine(),
            Verdict::Broken => style::wrong(),
            Verdict::Unreadable => style::waiting(),
        };
        table.row(vec![
            Cell::styled(finding.verdict.as_str(), colour),
            Cell::new(&finding.setting),
            Cell::new(finding.found.as_deref().unwrap_or("not readable")),
            Cell::new(&finding.wanted),
        ]);
    }
    table
}
