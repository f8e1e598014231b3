//! The frames of a segment, one after the other, and what to make of the place where they end.

use std::io;

use super::field::{large, small, u32_at};
use super::frame::{ALIGN, FRAME_HEAD_BYTES, Frame, Seed, is_whole, padded, plausible_bytes, view};
use super::header::HEADER_BYTES;
use crate::disk::DiskFile;

/// How much is read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Walks through the frames of a segment.
pub(crate) struct Walk<'a> {
    file: &'a dyn DiskFile,
    seed: Seed,
    /// Where the next frame begins.
    at: u32,
    /// Where the frames must end at the latest.
    end: u32,
    chunk: Vec<u8>,
    chunk_at: u32,
}

/// What comes next.
pub(crate) enum Step<'a> {
    /// A whole frame.
    Frame(Frame<'a>),
    /// Nothing but zeros where a frame would begin, or the end of the file.
    End,
    /// Something that is no frame.
    Damaged,
}

impl<'a> Walk<'a> {
    /// From the first frame up to `end`.
    pub(crate) fn new(file: &'a dyn DiskFile, seed: Seed, end: u32) -> Self {
        Self::from(file, seed, HEADER_BYTES, end)
    }

    /// From the frame at `at` up to `end`.
    pub(crate) fn from(file: &'a dyn DiskFile, seed: Seed, at: u32, end: u32) -> Self {
        Self { file, seed, at, end, chunk: Vec::new(), chunk_at: 0 }
    }

    /// Where the next frame begins.
    pub(crate) fn at(&self) -> u32 {
        self.at
    }

    /// The next frame. After anything else than a frame it stays where it is.
    pub(crate) fn next(&mut self) -> io::Result<Step<'_>> {
        let offset = self.at;
        let head = self.window(offset, large(FRAME_HEAD_BYTES))?;
        if head.iter().all(|byte| *byte == 0) {
            return Ok(Step::End);
        }
        let Some(bytes) = plausible_bytes(head) else { return Ok(Step::Damaged) };
        let seed = self.seed;
        let whole = self.window(offset, large(bytes))?;
        if !is_whole(whole, seed, offset) {
            return Ok(Step::Damaged);
        }
        self.at = offset.saturating_add(padded(bytes));
        Ok(view(self.window(offset, large(bytes))?, offset).map_or(Step::Damaged, Step::Frame))
    }

    /// Up to `wanted` bytes from `offset` on; fewer at the end.
    fn window(&mut self, offset: u32, wanted: usize) -> io::Result<&[u8]> {
        let wanted = wanted.min(large(self.end.saturating_sub(offset)));
        let has = |walk: &Self| {
            let from = offset.checked_sub(walk.chunk_at).map(large)?;
            (from.saturating_add(wanted) <= walk.chunk.len()).then_some(from)
        };
        if has(self).is_none() {
            let most = large(self.end.saturating_sub(offset));
            self.chunk.resize(wanted.max(CHUNK_BYTES).min(most), 0);
            let read = self.file.read_at(&mut self.chunk, u64::from(offset))?;
            self.chunk.truncate(read);
            self.chunk_at = offset;
        }
        let from = large(offset.saturating_sub(self.chunk_at));
        let until = from.saturating_add(wanted).min(self.chunk.len());
        Ok(self.chunk.get(from..until).unwrap_or_default())
    }
}

/// What is behind the place where the frames of the newest segment end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// Zeros up to the end.
    Nothing,
    /// What a cut left of the last batch, which was never acknowledged. Its last byte that is not zero is before this.
    TornBatch { until: u32 },
    /// A frame of a later batch: what is damaged here was synced, and may have been acknowledged.
    LaterBatch { offset: u32 },
}

/// Looks behind `at`, where something is that is no frame.
pub(crate) fn look_behind(file: &dyn DiskFile, seed: Seed, at: u32, end: u32) -> io::Result<Behind> {
    if is_zeros(file, at, end)? {
        return Ok(Behind::Nothing);
    }
    let mut rest = vec![0; large(end.saturating_sub(at))];
    let read_bytes = file.read_at(&mut rest, u64::from(at))?;
    rest.truncate(read_bytes);
    let Some(last) = rest.iter().rposition(|byte| *byte != 0) else { return Ok(Behind::Nothing) };
    for from in (0..=last).step_by(large(ALIGN)) {
        let Some(bytes) = rest.get(from..).and_then(plausible_bytes) else { continue };
        let offset = at.saturating_add(small(from));
        let batch_start = rest.get(from..).map_or(0, |frame| u32_at(frame, 8));
        // The first run begins behind the header, and proves nothing about it: both are one write.
        if batch_start <= at.max(HEADER_BYTES) || batch_start > offset {
            continue;
        }
        let whole = rest.get(from..from.saturating_add(large(bytes)));
        if whole.is_some_and(|whole| is_whole(whole, seed, offset)) {
            return Ok(Behind::LaterBatch { offset });
        }
    }
    Ok(Behind::TornBatch { until: at.saturating_add(small(last)).saturating_add(1) })
}

/// Whether there is nothing but zeros, as behind the frames of almost every segment: seen in a small buffer, many times
/// faster than a search for the last byte that is not zero.
fn is_zeros(file: &dyn DiskFile, at: u32, end: u32) -> io::Result<bool> {
    let zeros = vec![0; CHUNK_BYTES];
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = at;
    while at < end {
        let wanted = CHUNK_BYTES.min(large(end.saturating_sub(at)));
        let read = file.read_at(chunk.get_mut(..wanted).unwrap_or_default(), u64::from(at))?;
        if chunk.get(..read) != zeros.get(..read) {
            return Ok(false);
        }
        if read < wanted {
            break;
        }
        at = at.saturating_add(small(read));
    }
    Ok(true)
}
