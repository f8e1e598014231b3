//! From a store to lines; also from where an export that was cut left off.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use semel::record::State;
use semel::store::{Filter, Store};
use semel_ops::lookup::walk::{self, Walk};
use semel_ops::store_url::Address;

use super::line::{self, End, Header};
use crate::keys::IdPrefix;
use crate::store_arg::StoreArg;
use crate::terminal::{Bar, counted, moment};

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// Write to this file instead of standard output; it must not be there yet
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Go on with a file that was cut, behind its last whole line
    #[arg(long, requires = "to", conflicts_with = "after")]
    resume: bool,
    /// Only ids behind this one
    #[arg(long, value_name = "ID")]
    after: Option<IdPrefix>,
}

/// Where lines go, and what is known of them.
struct Sink {
    out: BufWriter<File>,
    after: Option<IdPrefix>,
    records: u64,
}

impl ExportArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let address = store.address()?;
        let store = store.open_existing().await?;
        store.must_show_content()?;
        let to = self.to.as_deref().map_or("standard output".into(), |path| path.display().to_string());
        let Some(mut sink) = self.begin(&address, &**store).await? else {
            eprintln!("{to} is complete: there is nothing to go on with.");
            return Ok(());
        };
        let (before, mut running, mut unreadable) = (sink.records, 0_u64, 0_u64);
        let bar = Bar::of_ids("exporting");
        let mut walk = Walk::new(&**store, Filter::default(), sink.after.as_ref().map(IdPrefix::last));
        while let Some(page) = walk.next().await? {
            for record in &page.records {
                running = running.saturating_add(u64::from(matches!(record.state, State::Running(_))));
                sink.line(&line::write(record)?)?;
                sink.records = sink.records.saturating_add(1);
            }
            for (id, error) in &page.damaged {
                unreadable = unreadable.saturating_add(1);
                eprintln!("warning: the record {id} cannot be read: {error}");
            }
            // Whatever comes next, these lines are whole.
            sink.out.flush()?;
            bar.walked(walk.after(), sink.records);
        }
        sink.line(&serde_json::to_vec(&End::new(sink.records))?)?;
        sink.out.flush()?;
        if self.to.is_some() {
            // Only what is on the disk is exported.
            sink.out.get_ref().sync_all().with_context(|| format!("cannot sync {to}"))?;
        }
        drop(bar);
        report(&address, &to, (sink.records, before), running);
        if unreadable > 0 {
            bail!(
                "{} cannot be read, and the export is without: restore what is damaged, then export again",
                counted(unreadable, "record")
            );
        }
        Ok(())
    }

    /// Where lines go; `None` if they are all there.
    async fn begin(&self, from: &Address, store: &dyn Store) -> Result<Option<Sink>> {
        let out = match &self.to {
            None => File::from(io::stdout().as_fd().try_clone_to_owned()?),
            Some(path) if self.resume => return resume(path),
            Some(path) => create(path)?,
        };
        let mut sink = Sink { out: BufWriter::new(out), after: self.after.clone(), records: 0 };
        let now = moment::rfc3339(walk::now(store).await?);
        let header = Header::new(from.to_string(), now, self.after.as_ref().map(ToString::to_string));
        sink.line(&serde_json::to_vec(&header)?)?;
        Ok(Some(sink))
    }
}

/// Nobody else may read it: permit ids and outcomes are in it.
fn create(path: &Path) -> Result<File> {
    let shown = path.display();
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(|error| {
        let next = if error.kind() == io::ErrorKind::AlreadyExists {
            format!("{shown} is there already: go on with it by --resume, or give another name")
        } else {
            format!("cannot make {shown}; check the path and its rights")
        };
        anyhow::Error::new(error).context(next)
    })
}

impl Sink {
    fn line(&mut self, line: &[u8]) -> Result<()> {
        self.out.write_all(line)?;
        self.out.write_all(b"\n")?;
        Ok(())
    }
}

/// On stderr: standard output may be the export itself.
fn report(from: &Address, to: &str, (records, before): (u64, u64), running: u64) {
    let all = counted(records, "record");
    let resumed =
        if before > 0 { format!(", {} of them before", counted(before, "record")) } else { String::new() };
    eprintln!(
        "Exported {all} to {to}{resumed}. It holds outcomes and permit ids: keep it as secret as the store."
    );
    if running > 0 {
        eprintln!(
            "warning: {} still running. Their runs go on against {}; an import holds such a key until\n\
             somebody decides. Better: stop the callers, wait for the runs to end, and export again.",
            counted(running, "record"),
            from
        );
    }
}

/// What there is of an export; `None` if it is complete.
fn resume(path: &Path) -> Result<Option<Sink>> {
    let shown = path.display();
    let file = OpenOptions::new()
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
            let header = Header::parse(&line).with_context(|| format!("cannot go on with {shown}"))?;
            if !header.is_current() {
                bail!(
                    "{shown} was begun by an older release of semel; remove it, and export without --resume"
                );
            }
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
    Ok(Some(Sink { out: BufWriter::new(file), after, records }))
}

fn last_id(line: &[u8], path: &Path) -> Result<IdPrefix> {
    let id = line::read(line).and_then(|record| record.key.id().to_string().parse());
    id.map_err(|what: String| {
        anyhow!("the last whole line of {} is damaged: {what}; export anew", path.display())
    })
}
