//! The disk itself: it loses what it may, keeps what it must, and does both often enough to be a test of anything.

use std::collections::BTreeSet;
use std::sync::Arc;

use semel_file::disk::{Disk, DiskFile};

use super::content::SECTOR_BYTES;
use super::{SimulatedDisk, Syncs};
use crate::dice::Dice;

const CUTS: u64 = 300;

/// What is in the file after a cut; `None` if it has no name any more.
fn found(disk: &SimulatedDisk, name: &str) -> Option<Vec<u8>> {
    let image = disk.image();
    image.find(name).ok().map(|file| image.bytes(file).to_vec())
}

/// Everything that may be found after a cut.
fn cuts(make: impl Fn() -> SimulatedDisk, name: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..CUTS).map(|seed| found(&make().cut(&mut Dice::new(seed)), name)).collect()
}

fn synced(bytes: &[u8]) -> (SimulatedDisk, Arc<dyn DiskFile>) {
    let disk = SimulatedDisk::new();
    let file = disk.create("log").unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync().unwrap();
    disk.sync_names().unwrap();
    (disk, file)
}

#[test]
fn what_is_synced_survives_every_cut() {
    let all = cuts(|| synced(b"kept").0, "log");
    assert_eq!(all, BTreeSet::from([Some(b"kept".to_vec())]));
}

#[test]
fn a_lying_disk_loses_what_it_said_was_synced() {
    let make = || {
        let disk = SimulatedDisk::holding(SimulatedDisk::new().image(), Syncs::Lying);
        disk.create("log").unwrap().sync().unwrap();
        disk.sync_names().unwrap();
        disk
    };
    assert_eq!(cuts(make, "log"), BTreeSet::from([None, Some(Vec::new())]));
}

#[test]
fn each_sector_is_found_old_or_new_and_never_torn() {
    let (old, new) = (vec![1; 3 * SECTOR_BYTES], vec![2; 3 * SECTOR_BYTES]);
    let make = || {
        let (disk, file) = synced(&old);
        file.write_at(&new, 0).unwrap();
        disk
    };
    let all = cuts(make, "log");
    assert_eq!(all.len(), 8, "every mix of three sectors");
    for content in all.iter().flatten() {
        assert!(content.chunks(SECTOR_BYTES).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
    }
}

#[test]
fn of_two_writes_of_one_sector_the_later_never_survives_without_the_earlier() {
    let make = || {
        let (disk, file) = synced(b"....");
        file.write_at(b"a", 0).unwrap();
        file.write_at(b"b", 1).unwrap();
        disk
    };
    let all = cuts(make, "log");
    assert_eq!(all, ["....", "a...", "ab.."].map(|text| Some(text.as_bytes().to_vec())).into());
}

#[test]
fn a_cut_file_may_be_found_in_its_old_length() {
    let make = || {
        let (disk, file) = synced(b"whole");
        file.set_bytes(2).unwrap();
        disk
    };
    let all = cuts(make, "log");
    assert!(all.contains(&Some(b"whole".to_vec())) && all.contains(&Some(b"wh".to_vec())), "{all:?}");
    let text: Vec<String> =
        all.iter().flatten().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    assert!(text.iter().all(|text| text.starts_with("wh")), "{text:?}");
}

#[test]
fn names_last_on_their_own_and_content_without_them() {
    let make = || {
        let (disk, _) = synced(b"kept");
        disk.rename("log", "other").unwrap();
        disk
    };
    assert_eq!(cuts(make, "log"), BTreeSet::from([None, Some(b"kept".to_vec())]));
    assert_eq!(cuts(make, "other"), BTreeSet::from([None, Some(b"kept".to_vec())]));
}

#[test]
fn nothing_is_done_after_the_power_is_gone() {
    let (disk, file) = synced(b"kept");
    disk.power_goes_after(1);
    file.write_at(b"a", 0).unwrap();
    file.write_at(b"b", 1).unwrap_err();
    assert!(disk.is_off());
    file.write_at(b"c", 2).unwrap_err();
    file.read_at(&mut [0], 0).unwrap_err();
    disk.names().unwrap_err();
    for seed in 0..CUTS {
        let content = found(&disk.cut(&mut Dice::new(seed)), "log").unwrap();
        assert!([&b"kept"[..], b"aept", b"abpt"].contains(&content.as_slice()));
    }
}
