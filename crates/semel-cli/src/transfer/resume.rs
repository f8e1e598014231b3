//! Where an export that was cut goes on: behind its last whole line.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::frame::{End, Header};
use super::line;
use crate::keys::IdPrefix;

/// A file that is to be gone on with.
pub(super) struct Resumed {
    /// Cut behind its last whole line, and written from there on.
    pub(super) file: File,
    /// The last id in it.
    pub(super) after: Option<IdPrefix>,
    /// How many records are in it.
    pub(super) records: u64,
}

/// What there is of an export; `None` if it is complete.
pub(super) fn resume(path: &Path) -> Result<Option<Resumed>> {
    let shown = path.display();
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .open(path)
        .with_context(|| format!("cannot go on with {shown}; without --resume, a new export is made"))?;
    let mut reader = BufReader::new(file);
    let (mut line, mut last, mut records, mut whole) = (Vec::new(), Vec::new(), 0_u64, 0_u64);
    let mut is_first = true;
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            break;
        }
        if is_first {
            Header::parse(&line).with_context(|| format!("cannot go on with {shown}"))?;
            is_first = false;
        } else if End::parse(&line).is_some() {
            return Ok(None);
        } else {
            records = records.saturating_add(1);
            std::mem::swap(&mut last, &mut line);
        }
        whole = whole.saturating_add(read as u64);
    }
    if is_first {
        bail!("{shown} does not even hold a whole header; remove it, and export without --resume");
    }
    let after = if records == 0 { None } else { Some(last_id(&last, path)?) };
    let mut file = reader.into_inner();
    file.set_len(whole)?;
    file.seek(SeekFrom::Start(whole))?;
    Ok(Some(Resumed { file, after, records }))
}

fn last_id(line: &[u8], path: &Path) -> Result<IdPrefix> {
    let id = line::id_of(line).and_then(|id| id.parse());
    match id {
        Ok(id) => Ok(id),
        Err(what) => bail!("the last whole line of {} is damaged: {what}; export anew", path.display()),
    }
}
