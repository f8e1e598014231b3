//! `[bounds]`, `[timeouts]` and `[quotas]`: what the process may use, and for how long.

use std::ops::RangeInclusive;
use std::time::Duration;

use semel_http::Quotas;

use crate::settings::{Bounds, Timeouts};
use semel_config::Table;
use semel_config::value::{bytes, count, time};

/// More of anything than one process can have.
const MANY: u64 = 10_000_000;

pub(super) fn bounds(mut table: Table<'_>) -> Bounds {
    let mut bounds = Bounds::default();
    table.set("connections_max", &mut bounds.connections_max, count(1..=MANY));
    table.set("connections_per_peer_max", &mut bounds.connections_per_peer_max, count(1..=MANY));
    table.set("in_flight_max", &mut bounds.in_flight_max, count(1..=MANY));
    table.set("held_bytes_max", &mut bounds.held_bytes_max, bytes(1..=1 << 40));
    // hyper reads a head into one buffer, which is no smaller than this.
    table.set("head_bytes_max", &mut bounds.head_bytes_max, bytes(8 << 10..=16 << 20));
    table.set("streams_max", &mut bounds.streams_max, count(1..=65_536));
    table.set("upstream_idle_max", &mut bounds.upstream_idle_max, count(0..=MANY));
    table.finish();
    bounds
}

pub(super) fn timeouts(mut table: Table<'_>) -> Timeouts {
    let span = || -> RangeInclusive<Duration> { Duration::from_millis(10)..=Duration::from_hours(24) };
    let mut timeouts = Timeouts::default();
    table.set("handshake", &mut timeouts.handshake, time(span()));
    table.set("head", &mut timeouts.head, time(span()));
    table.set("body", &mut timeouts.body, time(span()));
    table.set("body_idle", &mut timeouts.body_idle, time(span()));
    table.set("connect", &mut timeouts.connect, time(span()));
    table.set("response", &mut timeouts.response, time(span()));
    table.set("upgraded_idle", &mut timeouts.upgraded_idle, time(span()));
    table.set("upstream_idle", &mut timeouts.upstream_idle, time(span()));
    table.set("store", &mut timeouts.store, time(span()));
    table.set("drain", &mut timeouts.drain, time(Duration::ZERO..=Duration::from_hours(24)));
    table.finish();
    timeouts
}

pub(super) fn quotas(mut table: Table<'_>) -> Option<Quotas> {
    let quotas = Quotas {
        new_keys_per_minute: table.read("new_keys_per_minute", count(1..=u64::MAX)),
        records: table.read("records", count(1..=u64::MAX)),
        bytes: table.read("bytes", bytes(1..=1 << 50)),
    };
    table.finish();
    (quotas != Quotas::default()).then_some(quotas)
}
