//! Requests that are sent when they are due, whatever is answered: a closed loop sends less while a server pauses, and so
//! hides the pause.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::requests::{Keys, window};
use super::{AccessLog, BARE, NGINX};
use super::{Backends, Front, Layer, PROXY_FILE, SEMEL_FILE, SEMEL_MEMORY, Servers};
use crate::clients::Pace;
use crate::process::SemelStore;
use crate::report::{Case, Column, MS, Metric, Page, Rows, WHOLE, drive, float};

const OPEN_LOOP: &str = "open_loop";
/// Percent of the rate that the closed loop just before reached on the same processes.
const SHARES: [u64; 2] = [50, 80];
const CONNECTIONS: u64 = 256;
/// How many windows long each open loop is: rare pauses need time to show.
const WINDOWS: u32 = 4;

/// Measures how long requests wait, for each contestant at each share of its own capacity.
pub(super) fn measure(rounds: u64, span: Duration, backends: &Backends<'_>, rows: &mut Rows) -> Result<()> {
    let contestants = [
        (BARE, Keys::None, Front::Handler(Layer::Bare)),
        (SEMEL_MEMORY, Keys::New, Front::Handler(Layer::SemelMemory)),
        (SEMEL_FILE, Keys::New, Front::Handler(Layer::SemelFile)),
        (NGINX, Keys::None, Front::Nginx(AccessLog::Off)),
        (PROXY_FILE, Keys::None, Front::Proxy(SemelStore::File)),
        (PROXY_FILE, Keys::New, Front::Proxy(SemelStore::File)),
    ];
    let case =
        |(name, keys, front): (_, Keys, _)| (Case::new(OPEN_LOOP, name).setting(keys.words()), (keys, front));
    let mut first = 0;
    drive(rounds, &[contestants.map(case).into()], rows, &mut |case, (keys, front)| {
        let servers = Servers::start(*front, backends)?;
        let mut expected_runs = 0;
        let mut send = |span, pace| {
            let window = window(servers.plan(span, pace), CONNECTIONS, *keys, first)?;
            first = window.next;
            expected_runs += window.runs;
            anyhow::Ok(window.sample)
        };
        let capacity = send(span, Pace::Answered)?[&Metric::PerSecond];
        let mut samples = Vec::new();
        for share in SHARES {
            let pace = Pace::Evenly(capacity * float(share) / 100.0);
            samples.push((case.load(share), send(span * WINDOWS, pace)?));
        }
        let ran = servers.runs()?;
        ensure!(ran == expected_runs, "the handler ran {ran} times, and clients saw {expected_runs} runs");
        Ok(samples)
    })
}

pub(super) fn describe(page: &mut Page) {
    let columns = [
        Column::text("", |case| case.contestant.to_owned()),
        Column::text("requests", |case| case.setting.to_owned()),
        Column::text("load", |case| format!("{}%", case.load)),
        Column::median("per second", Metric::PerSecond, WHOLE),
        Column::median("p50 ms", Metric::P50Us, MS),
        Column::median("p99 ms", Metric::P99Us, MS),
        Column::median("p99.9 ms", Metric::P999Us, MS),
        Column::median("longest ms", Metric::LongestUs, MS),
    ];
    page.table(OPEN_LOOP, &columns);
}
