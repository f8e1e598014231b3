//! The four methods over a folder.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use semel::store::{Answer, Loaded, Page, Reply, Scan, Store, Swap, SwapReplies, SwapReply, Swaps, Swept};
use semel::{Error, ErrorKind, Key, RecordId, Result};
use tokio::sync::oneshot;

use crate::blocking_reader::BlockingReader;
use crate::builder::FileStoreBuilder;
use crate::disk::Disk;
use crate::format::frame::index_key;
use crate::index::Entry;
use crate::index::entry::Kept;
use crate::reader::{Asked, Looked, Reader, Wait};
use crate::recovery::Recovered;
use crate::visit::{Visited, visit};
use crate::writer::Writer;
use crate::writer::queue::Queue;
use crate::writer::requests::{Stamped, SwapAnswer, SwapRequest, SweepRequest, Unread, WriterRequest};

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

/// The threads that do the work.
enum Work {
    /// A thread that writes, and one that reads what is not in memory.
    Threads { queue: Arc<Queue>, writer: Option<JoinHandle<Result<()>>>, blocking: Arc<BlockingReader> },
    /// The callers' threads, one at a time.
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
    pub(crate) fn inline(opened: Recovered) -> Self {
        let Recovered { reader, start, maintenance } = opened;
        let writer = Writer::new(Arc::clone(&reader), maintenance.inline(), start);
        Self { reader, work: Work::Inline(Arc::new(Mutex::new(writer))) }
    }

    /// Does its work on threads of its own.
    pub(crate) fn threaded(opened: Recovered) -> Result<Self> {
        let Recovered { reader, start, maintenance } = opened;
        let no_thread = |error: std::io::Error| {
            Error::new(ErrorKind::Unavailable, format!("cannot start a thread: {error}; raise the limit"))
                .caused_by(error)
        };
        let queue = Arc::new(Queue::default());
        let writer = Writer::new(Arc::clone(&reader), maintenance.threaded().map_err(no_thread)?, start);
        let thread = std::thread::Builder::new().name("semel-file-writer".to_owned());
        let asks = Arc::clone(&queue);
        let writer = thread.spawn(move || write_until_closed(writer, &asks)).map_err(no_thread)?;
        let blocking = Arc::new(BlockingReader::start(Arc::clone(&reader)).map_err(no_thread)?);
        Ok(Self { reader, work: Work::Threads { queue, writer: Some(writer), blocking } })
    }

    /// Stops cleanly, once everything that was asked is answered. Dropping does the same, and says nothing if it fails.
    pub fn close(mut self) -> Result<()> {
        self.stop()
    }

    /// How many records there are, the ones past their keep that no sweep has seen yet included.
    pub fn records(&self) -> usize {
        self.reader.index.len()
    }

    /// Shows all records that count to `see`, some at a time, from two threads, in no order: what counts and sums wants, and
    /// many times faster than [`scan`](Store::scan). It waits for the disk. A record that is written meanwhile may be
    /// shown twice.
    pub fn visit(&self, see: impl Fn(Visited) + Sync) -> Result<()> {
        self.reader.health.check()?;
        visit(&self.reader, see);
        Ok(())
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

    /// Has the writer do something; its answer comes through the receiver.
    fn request<T: Send + 'static>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<Stamped<T>>>) -> WriterRequest,
    ) -> Result<oneshot::Receiver<Result<Stamped<T>>>> {
        self.reader.health.check()?;
        let (caller, answer) = oneshot::channel();
        let request = make(caller);
        match &self.work {
            Work::Threads { queue, .. } => queue.push(request).map_err(|_| closed())?,
            Work::Inline(writer) => {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                let mut requests = vec![request];
                writer.turn(&mut requests);
                while writer.is_busy() {
                    writer.turn(&mut requests);
                }
            }
        }
        Ok(answer)
    }

    /// A first claim of a key that is there needs no writer: most retries end here.
    fn stale_at_once(&self, batch: &[Swap]) -> Option<(Entry, Key)> {
        let [swap @ Swap { expected: None, .. }] = batch else { return None };
        let entry = self.reader.index.get(&index_key(&swap.id()))?;
        let counts = entry.kept_at(self.reader.clock.now()) == Kept::Yes;
        counts.then(|| (entry, swap.next.key().clone()))
    }

    /// The record that stood in the way of a lone swap.
    fn stale(&self, entry: Entry, key: Key) -> Reply<SwapReplies> {
        let blocking = match &self.work {
            Work::Inline(_) => {
                let found = self.reader.read(&entry, Asked::Key(&key));
                return Reply::ready(Ok(self.reader.answer([swap_reply(found)].into())));
            }
            Work::Threads { blocking, .. } => blocking,
        };
        let found = match self.reader.at(&entry, Asked::Key(&key), Wait::Cached) {
            Ok(Looked::Found(record)) => Ok(record),
            Err(why) => Err(why),
            Ok(Looked::NotCached) => {
                let (reader, blocking) = (Arc::clone(&self.reader), Arc::clone(blocking));
                return Reply::later(async move {
                    let found = blocking.read(move |reader| reader.read(&entry, Asked::Key(&key))).await;
                    Ok(reader.answer([swap_reply(found)].into()))
                });
            }
        };
        Reply::ready(Ok(self.reader.answer([swap_reply(found)].into())))
    }
}

/// The life of the writer's thread.
fn write_until_closed(mut writer: Writer, queue: &Queue) -> Result<()> {
    /// However the thread ends, no caller may wait for it in vain.
    struct AtTheEnd<'a>(&'a Queue);
    impl Drop for AtTheEnd<'_> {
        fn drop(&mut self) {
            self.0.abandon();
        }
    }
    let _at_the_end = AtTheEnd(queue);
    let mut requests = Vec::new();
    loop {
        if writer.is_busy() || writer.expects_more() {
            queue.take_now(&mut requests);
        } else if !queue.take(&mut requests) {
            return writer.close();
        }
        if requests.is_empty() && !writer.is_busy() {
            std::thread::yield_now();
        }
        writer.turn(&mut requests);
    }
}

impl Store for FileStore {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        if let Err(error) = self.reader.health.check() {
            return Reply::ready(Err(error));
        }
        if let Some((entry, key)) = self.stale_at_once(&batch) {
            return self.stale(entry, key);
        }
        let answer = match self.request(|caller| WriterRequest::Swap(SwapRequest { batch, caller })) {
            Ok(answer) => answer,
            Err(error) => return Reply::ready(Err(error)),
        };
        let reader = Arc::clone(&self.reader);
        match &self.work {
            Work::Inline(_) => Reply::ready(received(answer).map(|answer| read_rest(&reader, answer))),
            Work::Threads { blocking, .. } => {
                let blocking = Arc::clone(blocking);
                Reply::later(async move {
                    let answer = receive(answer).await?;
                    if answer.value.unread.is_empty() {
                        return Ok(Answer::new(answer.now, answer.value.replies).caching(reader.caching));
                    }
                    read_rest_later(&reader, &blocking, answer.value).await
                })
            }
        }
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        if let Err(error) = self.reader.health.check() {
            return Reply::ready(Err(error));
        }
        let blocking = match &self.work {
            Work::Inline(_) => {
                let found = ids.iter().map(|id| self.reader.load_from_disk(id)).collect();
                return Reply::ready(Ok(self.reader.answer(found)));
            }
            Work::Threads { blocking, .. } => blocking,
        };
        let mut found: Vec<Loaded> = Vec::with_capacity(ids.len());
        let mut not_cached = Vec::new();
        for (at, id) in ids.into_iter().enumerate() {
            found.push(match self.reader.load(&id, Wait::Cached) {
                Ok(Looked::Found(record)) => Ok(record),
                Ok(Looked::NotCached) => {
                    not_cached.push((at, id));
                    Ok(None)
                }
                Err(why) => Err(why),
            });
        }
        if not_cached.is_empty() {
            return Reply::ready(Ok(self.reader.answer(found)));
        }
        let (reader, blocking) = (Arc::clone(&self.reader), Arc::clone(blocking));
        Reply::later(async move {
            let load = |reader: &Reader, (at, id)| (at, reader.load_from_disk(&id));
            let read =
                move |reader: &Reader| Ok(not_cached.into_iter().map(|one| load(reader, one)).collect());
            let late: Vec<(usize, Loaded)> = blocking.read(read).await?;
            for (at, loaded) in late {
                if let Some(place) = found.get_mut(at) {
                    *place = loaded;
                }
            }
            Ok(reader.answer(found))
        })
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        let sweep = |caller| WriterRequest::Sweep(SweepRequest { limit, removed: 0, caller });
        let answer = match self.request(sweep) {
            Ok(answer) => answer,
            Err(error) => return Reply::ready(Err(error)),
        };
        let swept = |answer: Stamped<Swept>| Answer::new(answer.now, answer.value);
        match &self.work {
            Work::Inline(_) => Reply::ready(received(answer).map(swept)),
            Work::Threads { .. } => Reply::later(async move { receive(answer).await.map(swept) }),
        }
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        if let Err(error) = self.reader.health.check() {
            return Reply::ready(Err(error));
        }
        match &self.work {
            Work::Inline(_) => Reply::ready(Ok(self.reader.scan(&scan))),
            Work::Threads { blocking, .. } => {
                let blocking = Arc::clone(blocking);
                Reply::later(async move { blocking.read(move |reader| Ok(reader.scan(&scan))).await })
            }
        }
    }
}

/// The reply to a swap in whose way this stood.
fn swap_reply(found: Loaded) -> SwapReply {
    match found {
        Ok(record) => SwapReply::Stale(record),
        Err(why) => SwapReply::Damaged(why),
    }
}

/// Reads what stood in the way of swaps, on a thread that may wait for the disk.
fn read_rest(reader: &Reader, answer: Stamped<SwapAnswer>) -> Answer<SwapReplies> {
    let Stamped { mut now, value: SwapAnswer { mut replies, unread } } = answer;
    for Unread { reply, entry, key } in unread {
        if let Some(reply) = replies.get_mut(reply) {
            *reply = swap_reply(reader.read(&entry, Asked::Key(&key)));
        }
        // It may be a later record than the one that was in the way.
        now = reader.clock.now();
    }
    Answer::new(now, replies).caching(reader.caching)
}

/// The same, on a thread that must not wait for the disk.
async fn read_rest_later(
    reader: &Reader,
    blocking: &BlockingReader,
    answer: SwapAnswer,
) -> Result<Answer<SwapReplies>> {
    let SwapAnswer { mut replies, unread } = answer;
    for Unread { reply, entry, key } in unread {
        let found = match reader.at(&entry, Asked::Key(&key), Wait::Cached) {
            Ok(Looked::Found(record)) => Ok(record),
            Ok(Looked::NotCached) => blocking.read(move |reader| reader.read(&entry, Asked::Key(&key))).await,
            Err(why) => Err(why),
        };
        if let Some(reply) = replies.get_mut(reply) {
            *reply = swap_reply(found);
        }
    }
    // What was read may be later than the request.
    Ok(reader.answer(replies))
}

/// The writer's answer. If there is none, the writer ended in the middle of something.
async fn receive<T>(answer: oneshot::Receiver<Result<Stamped<T>>>) -> Result<Stamped<T>> {
    answer.await.unwrap_or_else(|_| Err(silence()))
}

/// The answer that the writer gave inside the call.
fn received<T>(mut answer: oneshot::Receiver<Result<Stamped<T>>>) -> Result<Stamped<T>> {
    answer.try_recv().unwrap_or_else(|_| Err(silence()))
}

#[cold]
fn silence() -> Error {
    Error::new(ErrorKind::Unknown, "the writer ended before it answered; open the store again")
}

#[cold]
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Unavailable, "the store was closed; nothing happened: open it again")
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
