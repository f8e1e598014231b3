//! Connections that are open and send nothing: what the proxy holds for each.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Backends, Front, PROXY_FILE, Servers};
use crate::process::SemelStore;
use crate::report::{Bar, Case, Column, Metric, Page, Rows, Sample, WHOLE, drive, float};

const IDLE: &str = "idle";
/// The proxy takes no more from one peer than 8,192, and no more in all than a third of the files that it may open: 6,666 of
/// 20,000. More would be reset, so the bar of 10,000 connections is scaled to these.
const CONNECTIONS: u64 = 6_000;
const MIB: f64 = 1024.0 * 1024.0;
/// 200 MiB for 10,000.
const RESIDENT_MIB_MAX: f64 = 120.0;
const REQUEST: &[u8] = b"GET /runs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

fn case() -> Case {
    Case::new(IDLE, PROXY_FILE).load(CONNECTIONS)
}

/// Opens the connections one after the other. Each sends one request, which is answered, and stays open.
pub(super) fn measure(backends: &Backends<'_>, rows: &mut Rows) -> Result<()> {
    drive(1, &[vec![(case(), ())]], rows, &mut |case, ()| {
        let servers = Servers::start(Front::Proxy(SemelStore::File), backends)?;
        let before = resident_bytes(servers.front.pid())?;
        let connections = (0..CONNECTIONS).map(|_| open(servers.front.port)).collect::<Result<Vec<_>>>()?;
        let resident = resident_bytes(servers.front.pid())?;
        // Still there: an idle connection that was closed would cost nothing.
        for mut connection in connections {
            ask(&mut connection).context("an idle connection was closed")?;
        }
        let sample = Sample::from([(Metric::ResidentBytes, resident), (Metric::GrownBytesBefore, before)]);
        Ok(vec![(case, sample)])
    })
}

fn open(port: u16) -> Result<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    ask(&mut stream)?;
    Ok(stream)
}

fn ask(stream: &mut TcpStream) -> Result<()> {
    stream.write_all(REQUEST)?;
    let mut answer = [0; 4096];
    let read = stream.read(&mut answer)?;
    ensure!(answer[..read].starts_with(b"HTTP/1.1 200"), "a request was not answered with 200");
    Ok(())
}

/// Resident bytes of the children of the watchdog: the server that it watches.
fn resident_bytes(watchdog: u32) -> Result<f64> {
    let children = fs::read_to_string(format!("/proc/{watchdog}/task/{watchdog}/children"))?;
    let mut sum = 0.0;
    for pid in children.split_whitespace() {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        sum += kilobytes.map_or(0.0, |kilobytes: u64| float(kilobytes * 1024));
    }
    ensure!(sum > 0.0, "the server has no resident memory");
    Ok(sum)
}

pub(super) fn bars(rows: &Rows) -> Vec<Bar> {
    let mib = rows.median(case(), Metric::ResidentBytes) / MIB;
    vec![Bar::at_most(format!("{PROXY_FILE}, {CONNECTIONS} idle connections"), RESIDENT_MIB_MAX, mib, " MiB")]
}

pub(super) fn describe(page: &mut Page) {
    let columns = [
        Column::text("", |case| case.contestant.to_owned()),
        Column::load("idle connections"),
        Column::median("resident bytes before", Metric::GrownBytesBefore, WHOLE),
        Column::median("resident bytes", Metric::ResidentBytes, WHOLE),
    ];
    page.table(IDLE, &columns);
}
