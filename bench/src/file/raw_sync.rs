//! What the disk does without any store: 4 KiB at the next position, and a sync.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::timing::Stopwatch;

const BLOCK: [u8; 4_096] = [0x5e; 4_096];
const IN_PLACE_BYTES: u64 = 64 << 20;

/// Two files: one whose blocks are all allocated, and one that grows.
pub(super) struct RawSync {
    in_place: File,
    growing: File,
    in_place_at: u64,
    growing_at: u64,
}

impl RawSync {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        let open =
            |name: &str| File::options().create(true).truncate(true).write(true).open(folder.join(name));
        let (in_place, growing) = (open("in_place")?, open("growing")?);
        for at in (0..IN_PLACE_BYTES).step_by(BLOCK.len()) {
            in_place.write_all_at(&[0; BLOCK.len()], at)?;
        }
        in_place.sync_all()?;
        Ok(Self { in_place, growing, in_place_at: 0, growing_at: 0 })
    }

    /// Syncs per second of the file whose blocks are allocated.
    pub(super) fn in_place(&mut self, span: Duration) -> Result<f64> {
        syncs(&self.in_place, &mut self.in_place_at, IN_PLACE_BYTES, span)
    }

    /// Syncs per second of the file that grows.
    pub(super) fn growing(&mut self, span: Duration) -> Result<f64> {
        syncs(&self.growing, &mut self.growing_at, u64::MAX, span)
    }
}

fn syncs(file: &File, at: &mut u64, end: u64, span: Duration) -> Result<f64> {
    let watch = Stopwatch::start();
    let mut count = 0_u32;
    while watch.elapsed() < span {
        file.write_all_at(&BLOCK, *at)?;
        file.sync_data()?;
        *at = (*at + BLOCK.len() as u64) % end;
        count += 1;
    }
    Ok(f64::from(count) / watch.elapsed().as_secs_f64())
}
