//! Many records: a first page at once, and exports that do not grow.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use semel::machine::claim::{Ask, Probe, Reentry, record_once};
use semel::record::PermitId;
use semel::store::{Scan, Swap};
use semel::{Key, Lapse, Outcome};
use semel_ops::store_url::Address;

use crate::binary::{on, semel};
use crate::place::{Place, wait_for};

/// Many done records, in batches.
fn fill(place: &Place, records: usize, outcome: &Outcome) {
    wait_for(async {
        let store = place.url().parse::<Address>().expect("is fine").open().await.expect("opens");
        let numbers: Vec<usize> = (0..records).collect();
        for batch in numbers.chunks(1_000) {
            let swaps = batch.iter().map(|number| swap(*number, outcome)).collect();
            store.swap(swaps).await.expect("is written");
        }
    });
}

fn swap(number: usize, outcome: &Outcome) -> Swap {
    let ask = Ask {
        key: Key::scoped(["acme"], "charge", &format!("order-{number}")).expect("is fine"),
        fingerprint: None,
        label: None,
        permit_id: PermitId::new(rand::random()),
        owner: "worker-7".into(),
        reentry: Reentry::Refused,
        lease: Duration::from_mins(1),
        retention: Duration::from_hours(24),
        lapse: Lapse::Rerun,
        attempts_max: None,
        first_event: None,
        probe: Probe::None,
    };
    let write =
        record_once(None, &ask, outcome, semel::clock::Timestamp::from_micros(1)).write.expect("writes");
    Swap { expected: None, next: write.next, keep: write.keep }
}

#[test]
fn the_first_page_of_many_records_comes_at_once() {
    let place = Place::file();
    fill(&place, 200_000, &Outcome::success(vec![7_u8; 150]));
    let took = wait_for(async {
        let store = place.url().parse::<Address>().expect("is fine").open().await.expect("opens");
        #[expect(clippy::disallowed_methods, reason = "a test that measures")]
        let started = Instant::now();
        let page = store.scan(Scan { limit: 50, ..Scan::default() }).await.expect("is read").value;
        assert_eq!(page.records.len(), 50);
        started.elapsed()
    });
    assert!(took < Duration::from_millis(200), "{took:?}");
    let listed = on(&place, "keys list").fine();
    assert_eq!(listed.lines().count(), 52, "a heading, 50 records and a footer: {listed}");
}

#[test]
fn an_export_takes_no_more_memory_for_more_records() {
    let outcome = Outcome::success(vec![7_u8; 8 << 10]);
    let peak_mib = |records: usize| {
        let place = Place::file();
        fill(&place, records, &outcome);
        peak_of_export(&place, records) >> 10
    };
    let (few, many) = (peak_mib(2_000), peak_mib(20_000));
    // Ten times the records are 200 MiB more to write; what grows is the index of the store, by a few MiB.
    assert!(many < few + 24, "{few} MiB and {many} MiB");
}

/// The most memory that an export took while it ran, in KiB.
fn peak_of_export(place: &Place, records: usize) -> u64 {
    let mut command = semel();
    command.arg("export").env("SEMEL_STORE", place.url()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("starts");
    let mut out = child.stdout.take().expect("is piped");
    let (mut peak, mut lines, mut buffer) = (0, 0, vec![0; 1 << 20]);
    // It cannot end before the last of its lines is read, so there is something to look at up to there.
    loop {
        let read = out.read(&mut buffer).expect("is read");
        lines += buffer[..read].split(|byte| *byte == b'\n').count() - 1;
        if read == 0 {
            break;
        }
        peak = peak.max(memory_peak(child.id()));
    }
    assert!(child.wait().expect("ends").success());
    assert_eq!(lines, records + 2, "a header, every record, and the end");
    assert!(peak > 0, "somebody looked");
    peak
}

fn memory_peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0)
}
