//! Changes what is on disk behind the back of a store that is open.

use std::fs;
use std::path::{Path, PathBuf};

/// Checksum, length, start of the run, kind, version, keep, moment, half an id.
const FRAME_HEAD_BYTES: usize = 56;
/// Where in the mark the store's id is.
const STORE_ID: std::ops::Range<usize> = 12..28;

/// The newest frame with the record of a key, and its segment.
pub(crate) struct FrameOnDisk {
    path: PathBuf,
    content: Vec<u8>,
    frame: std::ops::Range<usize>,
}

impl FrameOnDisk {
    /// Finds the frame by the key's name, which must occur in no other key.
    pub(crate) fn of(folder: &Path, name: &str) -> Self {
        let mut logs: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        logs.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
        logs.sort();
        let found = logs.iter().rev().find_map(|path| {
            let content = fs::read(path).unwrap();
            let at = content.windows(name.len()).rposition(|window| window == name.as_bytes())?;
            let body = content[..at].windows(4).rposition(|window| window == b"SEML")?;
            let start = body - FRAME_HEAD_BYTES;
            let bytes = u32::from_le_bytes(content[start + 4..start + 8].try_into().unwrap());
            let frame = start..start + usize::try_from(bytes).unwrap();
            Some(Self { path: path.clone(), content, frame })
        });
        found.unwrap()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.content[self.frame.clone()]
    }

    /// Flips a byte of the record: the frame's checksum does not match any more.
    pub(crate) fn flip(mut self) {
        self.content[self.frame.end - 1] ^= 1;
        fs::write(&self.path, &self.content).unwrap();
    }

    /// Changes the record, and the frame's checksum with it: only the record itself is wrong.
    pub(crate) fn change_record(mut self, change: impl FnOnce(&mut [u8])) {
        let frame = self.frame.clone();
        change(&mut self.content[frame.start + FRAME_HEAD_BYTES..frame.end]);
        let folder = self.path.parent().unwrap();
        let mark = fs::read(folder.join("semel.store")).unwrap();
        let number: u32 = self.path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        let seed = crc32c::crc32c_append(crc32c::crc32c(&mark[STORE_ID]), &number.to_le_bytes());
        let offset = u32::try_from(frame.start).unwrap();
        let seed = crc32c::crc32c_append(seed, &offset.to_le_bytes());
        let checksum = crc32c::crc32c_append(seed, &self.content[frame.start + 4..frame.end]);
        self.content[frame.start..frame.start + 4].copy_from_slice(&checksum.to_le_bytes());
        fs::write(&self.path, &self.content).unwrap();
    }
}
