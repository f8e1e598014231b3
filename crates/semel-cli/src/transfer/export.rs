//! From a store to lines.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use semel::record::State;
use semel::store::{Filter, Store};
use semel_ops::store_url::Address;

use super::frame::{End, Header};
use super::{line, resume};
use crate::keys::IdPrefix;
use crate::opening;
use crate::terminal::bar::Bar;
use crate::terminal::moment;
use crate::terminal::number::counted;
use semel_ops::lookup::walk::{self, Walk};

/// What is to be exported, and where to.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) store: Address,
    /// Standard output if there is none.
    pub(crate) to: Option<PathBuf>,
    pub(crate) start: Start,
}

/// Where an export begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// With everything.
    Whole,
    /// Behind this id.
    After(IdPrefix),
    /// Behind the last whole line of the file.
    Resume,
}

/// Where lines go, and what is known of them.
struct Sink {
    out: Out,
    after: Option<IdPrefix>,
    records: u64,
}

enum Out {
    Standard(BufWriter<io::Stdout>),
    File(BufWriter<File>),
}

pub(crate) async fn export(plan: &Export) -> Result<()> {
    let store = opening::open_existing(&plan.store).await?;
    let Some(mut sink) = begin(plan, &*store).await? else {
        eprintln!("{} is complete: there is nothing to go on with.", place(plan.to.as_deref()));
        return Ok(());
    };
    let (before, mut running) = (sink.records, 0_u64);
    let bar = Bar::of_ids("exporting");
    let mut walk = Walk::new(&*store, Filter::default(), sink.after.as_ref().map(IdPrefix::last));
    while let Some(page) = walk.next().await? {
        for record in &page.records {
            running = running.saturating_add(u64::from(matches!(record.state, State::Running(_))));
            sink.line(&line::write(record)?)?;
            sink.records = sink.records.saturating_add(1);
        }
        // Whatever comes next, these lines are whole.
        sink.out.flush()?;
        bar.walked(walk.after(), sink.records);
    }
    sink.line(&serde_json::to_vec(&End::new(sink.records))?)?;
    sink.finish(plan.to.as_deref())?;
    drop(bar);
    report(plan, sink.records, before, running);
    Ok(())
}

async fn begin(plan: &Export, store: &dyn Store) -> Result<Option<Sink>> {
    if let (Start::Resume, Some(path)) = (&plan.start, &plan.to) {
        return Ok(resume::resume(path)?.map(|resumed| Sink {
            out: Out::File(BufWriter::new(resumed.file)),
            after: resumed.after,
            records: resumed.records,
        }));
    }
    let after = match &plan.start {
        Start::After(after) => Some(after.clone()),
        Start::Whole | Start::Resume => None,
    };
    let out = match &plan.to {
        None => Out::Standard(BufWriter::new(io::stdout())),
        Some(path) => Out::File(BufWriter::new(create(path)?)),
    };
    let mut sink = Sink { out, after: after.clone(), records: 0 };
    let now = moment::rfc3339(walk::now(store).await?);
    let header = Header::new(plan.store.to_string(), now, after.map(|after| after.to_string()));
    sink.line(&serde_json::to_vec(&header)?)?;
    Ok(Some(sink))
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

    /// Only what is on the disk is exported.
    fn finish(&mut self, path: Option<&Path>) -> Result<()> {
        self.out.flush()?;
        if let Out::File(file) = &self.out {
            file.get_ref().sync_all().with_context(|| format!("cannot sync {}", place(path)))?;
        }
        Ok(())
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Standard(out) => out.write(bytes),
            Self::File(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Standard(out) => out.flush(),
            Self::File(out) => out.flush(),
        }
    }
}

fn place(path: Option<&Path>) -> String {
    path.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string())
}

/// On stderr: standard output may be the export itself.
fn report(plan: &Export, records: u64, before: u64, running: u64) {
    let (all, to) = (counted(records, "record"), place(plan.to.as_deref()));
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
            plan.store
        );
    }
}
