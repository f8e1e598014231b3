//! The four methods over a folder.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use semel::record::Record;
use semel::store::{Answer, Page, Reply, Scan, Store, Swap, SwapReply, Swept};
use semel::{Error, ErrorKind, RecordId, Result};
use tokio::sync::oneshot;

use crate::builder::FileStoreBuilder;
use crate::disk::Disk;
use crate::format::frame::half;
use crate::index::Entry;
use crate::index::entry::Kept;
use crate::open::Opened;
use crate::patient::Patient;
use crate::reader::{Looked, Patience, Reader};
use crate::writer::Writer;
use crate::writer::ask::{Answered, Ask, SwapAsk, SweepAsk, Told};
use crate::writer::queue::Queue;

/// A store in a folder: what it acknowledged survives `kill -9` and power loss.
///
/// ```no_run
/// # fn main() -> semel::Result<()> {
/// let semel = semel::Semel::new(semel_file::FileStore::open("semel-data")?);
/// # let _ = semel;
/// # Ok(())
/// # }
/// ```
///
/// One process at a time; any number of callers in it. Dropping the store closes it.
pub struct FileStore {
    reader: Arc<Reader>,
    work: Work,
}

/// Who does the work.
enum Work {
    /// A thread that writes, and one that reads what is not in memory.
    Threads { queue: Arc<Queue>, writer: Option<JoinHandle<Result<()>>>, patient: Arc<Patient> },
    /// Whoever asks, one at a time.
    Inline(Arc<Mutex<Writer>>),
}

impl FileStore {
    /// Opens the store in a folder, which is made if it is missing.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open()
    }

    /// A store in a folder, with settings of your own.
    pub fn builder(path: impl AsRef<Path>) -> FileStoreBuilder {
        FileStoreBuilder::in_folder(path.as_ref().to_path_buf())
    }

    /// A store on a disk of your own: for tests, mostly.
    pub fn on(disk: Arc<dyn Disk>) -> FileStoreBuilder {
        FileStoreBuilder::on_disk(disk)
    }

    /// Does all work on the threads of the callers.
    pub(crate) fn inline(opened: Opened) -> Self {
        let Opened { reader, start, steward } = opened;
        let writer = Writer::new(Arc::clone(&reader), steward.inline(), start);
        Self { reader, work: Work::Inline(Arc::new(Mutex::new(writer))) }
    }

    /// Does its work on threads of its own.
    pub(crate) fn threaded(opened: Opened) -> Result<Self> {
        let Opened { reader, start, steward } = opened;
        let no_thread = |error: std::io::Error| {
            Error::new(ErrorKind::Unavailable, format!("cannot start a thread: {error}; raise the limit"))
                .caused_by(error)
        };
        let queue = Arc::new(Queue::default());
        let writer = Writer::new(Arc::clone(&reader), steward.threaded().map_err(no_thread)?, start);
        let thread = std::thread::Builder::new().name("semel-file-writer".to_owned());
        let asks = Arc::clone(&queue);
        let writer = thread.spawn(move || write_until_closed(writer, &asks)).map_err(no_thread)?;
        let patient = Arc::new(Patient::start(Arc::clone(&reader)).map_err(no_thread)?);
        Ok(Self { reader, work: Work::Threads { queue, writer: Some(writer), patient } })
    }

    /// Stops cleanly, once everything that was asked is answered. Dropping does the same, and says nothing if it fails.
    pub fn close(mut self) -> Result<()> {
        self.stop()
    }

    /// How many records there are, the ones past their keep that no sweep has seen yet included.
    pub fn records(&self) -> usize {
        self.reader.index.len()
    }

    fn stop(&mut self) -> Result<()> {
        match &mut self.work {
            Work::Threads { queue, writer, .. } => {
                queue.close();
                let Some(writer) = writer.take() else { return Ok(()) };
                let panicked =
                    |_| Error::new(ErrorKind::Unknown, "the writer panicked; open the store again");
                writer.join().map_err(panicked)?
            }
            Work::Inline(writer) => writer.lock().unwrap_or_else(PoisonError::into_inner).close(),
        }
    }

    /// Has the writer do something, and waits for what it says.
    fn ask<T: Send + 'static>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<Answered<T>>>) -> Ask,
    ) -> Result<oneshot::Receiver<Result<Answered<T>>>> {
        self.reader.health.check()?;
        let (caller, told) = oneshot::channel();
        let ask = make(caller);
        match &self.work {
            Work::Threads { queue, .. } => queue.push(ask).map_err(|_| closed())?,
            Work::Inline(writer) => {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                let mut asks = vec![ask];
                writer.turn(&mut asks);
                while writer.is_busy() {
                    writer.turn(&mut asks);
                }
            }
        }
        Ok(told)
    }

    /// A first claim of a key that is there needs no writer: most retries end here.
    fn stale_at_once(&self, batch: &[Swap]) -> Option<Entry> {
        let [swap @ Swap { expected: None, .. }] = batch else { return None };
        let entry = self.reader.index.get(&half(&swap.id()))?;
        (entry.kept_at(self.reader.clock.now()) == Kept::Yes).then_some(entry)
    }

    fn patient(&self) -> Option<Arc<Patient>> {
        match &self.work {
            Work::Threads { patient, .. } => Some(Arc::clone(patient)),
            Work::Inline(_) => None,
        }
    }
}

/// The life of the writer's thread.
fn write_until_closed(mut writer: Writer, queue: &Queue) -> Result<()> {
    /// However the thread ends, nobody may wait for it in vain.
    struct AtTheEnd<'a>(&'a Queue);
    impl Drop for AtTheEnd<'_> {
        fn drop(&mut self) {
            self.0.abandon();
        }
    }
    let _at_the_end = AtTheEnd(queue);
    let mut asks = Vec::new();
    loop {
        if writer.is_busy() || writer.expects_more() {
            queue.take_now(&mut asks);
        } else if !queue.take(&mut asks) {
            return writer.close();
        }
        if asks.is_empty() && !writer.is_busy() {
            std::thread::yield_now();
        }
        writer.turn(&mut asks);
    }
}

impl Store for FileStore {
    fn swap(&self, batch: Vec<Swap>) -> Reply<Vec<SwapReply>> {
        if let Err(error) = self.reader.health.check() {
            return failed(error);
        }
        let (reader, patient) = (Arc::clone(&self.reader), self.patient());
        if let Some(entry) = self.stale_at_once(&batch) {
            return Box::pin(async move {
                let reply = found(&reader, patient.as_ref(), entry).await?;
                Ok(Answer { now: reader.clock.now(), value: vec![reply] })
            });
        }
        let told = match self.ask(|caller| Ask::Swap(SwapAsk { batch, caller })) {
            Ok(told) => told,
            Err(error) => return failed(error),
        };
        Box::pin(async move {
            let Answered { mut now, value } = heard(told).await?;
            let mut replies = Vec::with_capacity(value.len());
            for told in value {
                replies.push(match told {
                    Told::Reply(reply) => reply,
                    Told::Found(entry) => {
                        let reply = found(&reader, patient.as_ref(), entry).await?;
                        // It may be a later record than the one that was in the way.
                        now = reader.clock.now();
                        reply
                    }
                });
            }
            Ok(Answer { now, value: replies })
        })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Option<Record>>> {
        let (reader, patient) = (Arc::clone(&self.reader), self.patient());
        Box::pin(async move {
            reader.health.check()?;
            let mut records = Vec::with_capacity(ids.len());
            for id in ids {
                records.push(match reader.load(&id, patience(patient.as_ref()))? {
                    Looked::Found(record) => record,
                    Looked::NotCached => {
                        on_disk(patient.as_ref(), move |reader| match reader.load(&id, Patience::Disk)? {
                            Looked::Found(record) => Ok(record),
                            Looked::NotCached => Ok(None),
                        })
                        .await?
                    }
                });
            }
            Ok(Answer { now: reader.clock.now(), value: records })
        })
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        let told = self.ask(|caller| Ask::Sweep(SweepAsk { limit, removed: 0, caller }));
        Box::pin(async move {
            let Answered { now, value } = heard(told?).await?;
            Ok(Answer { now, value })
        })
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        let (reader, patient) = (Arc::clone(&self.reader), self.patient());
        Box::pin(async move {
            reader.health.check()?;
            let page = match &patient {
                Some(_) => on_disk(patient.as_ref(), move |reader| reader.scan(&scan)).await?,
                None => reader.scan(&scan)?,
            };
            Ok(Answer { now: reader.clock.now(), value: page })
        })
    }
}

/// Without a thread that may wait for the disk, the caller does.
fn patience(patient: Option<&Arc<Patient>>) -> Patience {
    if patient.is_some() { Patience::Cached } else { Patience::Disk }
}

/// The record that stood in the way of a swap.
async fn found(reader: &Arc<Reader>, patient: Option<&Arc<Patient>>, entry: Entry) -> Result<SwapReply> {
    let record = match reader.at(&entry, patience(patient))? {
        Looked::Found(record) => record,
        Looked::NotCached => {
            on_disk(patient, move |reader| match reader.at(&entry, Patience::Disk)? {
                Looked::Found(record) => Ok(record),
                Looked::NotCached => Ok(None),
            })
            .await?
        }
    };
    Ok(SwapReply::Stale(record.map(Arc::new)))
}

/// Reads on the thread that may wait for the disk.
async fn on_disk<T: Send + 'static>(
    patient: Option<&Arc<Patient>>,
    read: impl FnOnce(&Reader) -> Result<T> + Send + 'static,
) -> Result<T> {
    match patient {
        Some(patient) => patient.read(read).await,
        None => Err(closed()),
    }
}

/// What the writer said. If it said nothing, it ended in the middle of something.
async fn heard<T>(told: oneshot::Receiver<Result<Answered<T>>>) -> Result<Answered<T>> {
    let silence =
        || Error::new(ErrorKind::Unknown, "the writer ended before it answered; open the store again");
    told.await.unwrap_or_else(|_| Err(silence()))
}

#[cold]
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Unavailable, "the store was closed; nothing happened: open it again")
}

fn failed<T: Send + 'static>(error: Error) -> Reply<T> {
    Box::pin(std::future::ready(Err(error)))
}

impl Drop for FileStore {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::warn!(%error, "semel: the store was not closed cleanly");
        }
    }
}

impl std::fmt::Debug for FileStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileStore({}, {} records)", self.reader.place, self.records())
    }
}
