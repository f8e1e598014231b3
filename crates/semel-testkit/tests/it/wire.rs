//! A store behind a socket, as small as can be: enough to lose what goes over it.
//!
//! A message is its length and its bytes. What is asked for is a letter and what belongs to it; numbers have eight bytes, and
//! records are as the codec writes them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::{Draft, Keep, Record, Version};
use semel::store::{
    Answer, Filter, Loaded, Page, Reply, Scan, Store, Swap, SwapReplies, SwapReply, Swaps, Swept,
};
use semel::{Error, ErrorKind, RecordId, Result, codec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// How many connections a client has.
const CONNECTIONS: usize = 4;

/// Serves a store on a free port for as long as the test runs.
pub(crate) async fn serve(store: Arc<dyn Store>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                while let Ok(asked) = receive(&mut stream).await {
                    let answer = answer(&*store, Reader(&asked)).await.unwrap();
                    if send(&mut stream, &answer.0).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

async fn answer(store: &dyn Store, mut asked: Reader<'_>) -> Result<Writer> {
    let mut writer = Writer::default();
    match asked.number() {
        SWAP => {
            let swap = |asked: &mut Reader<'_>| Swap {
                expected: Some(asked.number()).filter(|number| *number > 0).map(Version::new),
                keep: match asked.number() {
                    u64::MAX => Keep::Forever,
                    micros => Keep::For(Duration::from_micros(micros)),
                },
                next: Draft::from_unstamped(asked.maybe().unwrap()),
            };
            let swaps = (0..asked.number()).map(|_| swap(&mut asked)).collect();
            let Answer { now, value, .. } = store.swap(swaps).await?;
            writer.number(now.as_micros());
            for reply in value {
                match reply {
                    SwapReply::Swapped(record) => writer.number(0).maybe(Some(&record)),
                    SwapReply::Stale(found) => writer.number(1).maybe(found.as_deref()),
                    SwapReply::Full => writer.number(2),
                    SwapReply::Damaged(error) | SwapReply::Refused(error) => return Err(error),
                };
            }
        }
        LOAD => {
            let ids = (0..asked.number()).map(|_| asked.id()).collect();
            let Answer { now, value, .. } = store.load(ids).await?;
            writer.number(now.as_micros());
            for found in value {
                writer.maybe(found?.as_deref());
            }
        }
        SWEEP => {
            let Answer { now, value, .. } = store.sweep(asked.count()).await?;
            writer.number(now.as_micros()).number(value.removed as u64).number(u64::from(value.more_left));
        }
        _ => {
            let limit = asked.count();
            let after = (asked.number() == 1).then(|| asked.id());
            let Answer { now, value, .. } =
                store.scan(Scan { filter: Filter::default(), after, limit }).await?;
            writer.number(now.as_micros()).number(value.records.len() as u64);
            for record in &value.records {
                writer.record(record);
            }
            writer.number(u64::from(value.next.is_some()));
            value.next.iter().for_each(|id| writer.0.extend(id.as_bytes()));
        }
    }
    Ok(writer)
}

/// The other end: a store that is asked over sockets, and makes new ones when they break.
pub(crate) struct Wire(Arc<Connections>);

struct Connections {
    address: SocketAddr,
    streams: [Mutex<Option<TcpStream>>; CONNECTIONS],
    turn: AtomicUsize,
}

impl Wire {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self(Arc::new(Connections { address, streams: Default::default(), turn: AtomicUsize::new(0) }))
    }

    fn ask<T: 'static>(
        &self,
        asked: Writer,
        read: impl FnOnce(Reader<'_>) -> Answer<T> + Send + 'static,
    ) -> Reply<T> {
        let connections = Arc::clone(&self.0);
        Reply::later(async move {
            let answer = connections.ask(&asked.0).await?;
            Ok(read(Reader(&answer)))
        })
    }
}

impl Connections {
    async fn ask(&self, asked: &[u8]) -> Result<Vec<u8>> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % CONNECTIONS;
        let mut place = self.streams[turn].lock().await;
        let mut stream = match place.take() {
            Some(stream) => stream,
            None => TcpStream::connect(self.address).await.map_err(|error| {
                Error::new(ErrorKind::Unavailable, "no way to the store").caused_by(error)
            })?,
        };
        // From here on it may have arrived, whatever happens.
        let answer = async {
            send(&mut stream, asked).await?;
            receive(&mut stream).await
        };
        match answer.await {
            Ok(answer) => {
                *place = Some(stream);
                Ok(answer)
            }
            Err(error) => Err(Error::new(ErrorKind::Unknown, "no answer; ask again").caused_by(error)),
        }
    }
}

impl Store for Wire {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let mut asked = Writer::default();
        asked.number(SWAP).number(batch.len() as u64);
        for swap in &batch {
            asked.number(swap.expected.map_or(0, Version::get)).number(match swap.keep {
                Keep::Forever => u64::MAX,
                Keep::For(span) => u64::try_from(span.as_micros()).unwrap(),
            });
            asked.record(swap.next.unstamped());
        }
        self.ask(asked, move |mut answer| {
            let now = answer.now();
            let reply = |_: Swap| match answer.number() {
                0 => SwapReply::Swapped(Arc::new(answer.maybe().unwrap())),
                1 => SwapReply::Stale(answer.shared()),
                _ => SwapReply::Full,
            };
            Answer::new(now, batch.into_iter().map(reply).collect())
        })
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        let mut asked = Writer::default();
        asked.number(LOAD).number(ids.len() as u64);
        for id in &ids {
            asked.0.extend(id.as_bytes());
        }
        self.ask(asked, move |mut answer| {
            let now = answer.now();
            Answer::new(now, ids.into_iter().map(|_| Ok(answer.shared())).collect())
        })
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        let mut asked = Writer::default();
        asked.number(SWEEP).number(limit as u64);
        self.ask(asked, |mut answer| {
            let now = answer.now();
            let (removed, more_left) = (answer.count(), answer.number() == 1);
            Answer::new(now, Swept { removed, more_left })
        })
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        let mut asked = Writer::default();
        asked.number(SCAN).number(scan.limit as u64).number(u64::from(scan.after.is_some()));
        scan.after.iter().for_each(|id| asked.0.extend(id.as_bytes()));
        self.ask(asked, move |mut answer| {
            let now = answer.now();
            let mut records: Vec<_> = (0..answer.number()).filter_map(|_| answer.shared()).collect();
            records.retain(|record| scan.filter.matches(record, now));
            let next = (answer.number() == 1).then(|| answer.id());
            Answer::new(now, Page { records, damaged: Vec::new(), next })
        })
    }
}

const SWAP: u64 = 0;
const LOAD: u64 = 1;
const SWEEP: u64 = 2;
const SCAN: u64 = 3;

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn record(&mut self, record: &Record) -> &mut Self {
        let bytes = codec::encode(record).unwrap();
        self.number(bytes.len() as u64).0.extend(bytes);
        self
    }

    fn maybe(&mut self, record: Option<&Record>) -> &mut Self {
        match record {
            Some(record) => self.record(record),
            None => self.number(0),
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_first_chunk().unwrap();
        self.0 = rest;
        *head
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn count(&mut self) -> usize {
        usize::try_from(self.number()).unwrap()
    }

    fn now(&mut self) -> Timestamp {
        Timestamp::from_micros(self.number())
    }

    fn id(&mut self) -> RecordId {
        RecordId::from_bytes(self.take())
    }

    fn shared(&mut self) -> Option<Arc<Record>> {
        self.maybe().map(Arc::new)
    }

    fn maybe(&mut self) -> Option<Record> {
        let length = self.count();
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        (length > 0).then(|| codec::decode(bytes).unwrap())
    }
}

async fn send(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let message = [&(bytes.len() as u64).to_le_bytes(), bytes].concat();
    stream.write_all(&message).await
}

async fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(stream.read_u64_le().await?).unwrap()];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}
