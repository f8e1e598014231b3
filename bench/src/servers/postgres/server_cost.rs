//! What the server spends on a cycle: processor time, and bytes of its write-ahead log.

use std::fs;

use anyhow::{Context, Result};
use test_services::Postgres;
use tokio::runtime::Runtime;
use tokio_postgres::Client;

use super::super::SEMEL;
use crate::callers::Entry;
use crate::report::{Bar, Case, Column, Metric, Page, Rows, Sample, WHOLE, count, float};
use crate::timing::Cpu;

pub(super) const SERVER: &str = "server";
/// Nine tenths of the bytes of a cycle of 256 callers in November 2026, before rows were completed where they are: 1,404 by
/// this measurement.
const WAL_BYTES_MOST: f64 = 1_404.0 * 0.9;
const WAL_END: &str = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";

/// A server whose processes and log are watched.
pub(super) struct ServerCost<'a> {
    client: &'a Client,
    postmaster: u32,
}

impl<'a> ServerCost<'a> {
    pub(super) fn of(server: &Postgres, client: &'a Client) -> Result<Self> {
        let file = fs::read_to_string(server.folder().join("data/postmaster.pid"))?;
        let postmaster = file.lines().next().context("the server does not say which process it is")?;
        Ok(Self { client, postmaster: postmaster.trim().parse()? })
    }

    /// What a window found, and what its cycles cost the server.
    pub(super) fn window(
        &self,
        runtime: &Runtime,
        entry: &Entry,
        window: impl FnOnce() -> Result<Sample>,
    ) -> Result<(Sample, Sample)> {
        let (cpu, log, ran) = (Cpu::of(self.postmaster)?, self.wal_end(runtime)?, entry.loaded.answers().ran);
        let found = window()?;
        let cycles = float((entry.loaded.answers().ran - ran).max(1));
        let bytes = float(self.wal_end(runtime)?.saturating_sub(log));
        let cost = Sample::from([
            (Metric::ServerCpuUs, cpu.until_now()?.as_secs_f64() * 1e6 / cycles),
            (Metric::WalBytes, bytes / cycles),
        ]);
        Ok((found, cost))
    }

    fn wal_end(&self, runtime: &Runtime) -> Result<u64> {
        let row = runtime.block_on(self.client.query_one(WAL_END, &[]))?;
        Ok(u64::try_from(row.try_get::<_, i64>(0)?)?)
    }
}

pub(super) fn describe(page: &mut Page) {
    let beside = |case: Case| (case.contestant(SEMEL), case);
    let columns = [
        Column::contestant(),
        Column::load("callers"),
        Column::median("server CPU µs", Metric::ServerCpuUs, WHOLE),
        Column::range(Metric::ServerCpuUs, WHOLE),
        Column::median("log bytes", Metric::WalBytes, WHOLE),
        Column::range(Metric::WalBytes, WHOLE),
        Column::times("semel's CPU is", Metric::ServerCpuUs, beside),
        Column::times("its log is", Metric::WalBytes, beside),
    ];
    page.table(SERVER, &columns);
}

/// The bar on the bytes that semel's cycles log.
pub(super) fn wal_bar(rows: &Rows, semel: Case) -> Bar {
    let bytes = rows.median(semel.work(SERVER), Metric::WalBytes);
    let name = format!("log bytes a cycle, {}", count(semel.load, "caller"));
    Bar::at_most(name, WAL_BYTES_MOST, bytes, " bytes")
}
