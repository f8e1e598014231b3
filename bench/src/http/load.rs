//! Connections that each send one request after the other, as fast as they are answered, and check every answer.
//!
//! All of them are on one thread. It shares the cores with who is measured, so it must be light: a request is a write of bytes
//! that are there already, an answer one read of a few hundred. wrk 4.1 was tried beside it on the bare handler: with a script
//! that numbers the keys and looks at the answers it took 14 µs of the processor for a request, where this takes 9.

use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep;

use super::api::RUNS;
use super::cpu::Cpu;
use super::wire::{Answer, Head, Request, Run, shown};
use crate::stopwatch::{Stopwatch, processor_time};

/// How many keys are replayed.
pub(super) const REPLAYED_KEYS: u64 = 1_000;
const CREATED: u16 = 201;
const OK: u16 = 200;
/// More than any answer here has.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

/// What the requests bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// No key.
    None,
    /// A key that nobody had before.
    New,
    /// One of a thousand keys that are done.
    Done,
}

impl Keys {
    /// What such requests are called.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::None => "no key",
            Self::New => "new keys",
            Self::Done => "replays",
        }
    }
}

/// What a window is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) port: u16,
    /// Whose processor time is measured.
    pub(super) pid: u32,
    pub(super) connections: usize,
    pub(super) keys: Keys,
    /// The number of the first request: no two windows use the same, as some stores outlive them.
    pub(super) first: u64,
    pub(super) span: Duration,
}

/// What it found out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) rate: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// Processor time of the server, and of this process, for each request.
    pub(super) server_cpu_us: f64,
    pub(super) client_cpu_us: f64,
    /// How often the handler must have run, from its start to the end of the window.
    pub(super) runs: u64,
    /// The number of the next request.
    pub(super) next: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    WarmingUp,
    Counted,
    Over,
}

/// What all connections of a window share.
struct Common {
    plan: Plan,
    phase: Cell<Phase>,
    /// The next request of this phase.
    next: Cell<u64>,
    /// Which run each key that is done had.
    done: RefCell<Vec<Option<Run>>>,
    waits: RefCell<Histogram<u64>>,
}

/// Sends for a while, and checks every answer.
pub(super) fn window(plan: Plan) -> Result<Window> {
    let runtime = Builder::new_current_thread().enable_all().build().context("the runtime cannot start")?;
    LocalSet::new().block_on(&runtime, measured(plan))
}

async fn measured(plan: Plan) -> Result<Window> {
    let common = Rc::new(Common {
        plan,
        phase: Cell::new(Phase::WarmingUp),
        next: Cell::new(plan.first),
        done: RefCell::new(vec![None; usize::try_from(REPLAYED_KEYS)?]),
        waits: RefCell::new(Histogram::new(3)?),
    });
    let mut connections = Vec::new();
    for _ in 0..plan.connections {
        connections.push(Connection::open(&common).await?);
    }
    if plan.keys == Keys::Done {
        connections = load(connections).await?;
    }
    let turns_from = common.next.get();
    let mut sending = JoinSet::new();
    for connection in connections {
        sending.spawn_local(connection.work());
    }
    sleep(plan.span / 3).await;
    // The two clocks are read one right after the other, as they are at the end.
    let (cpu, ran, watch) = (Cpu::of(plan.pid)?, processor_time(), Stopwatch::start());
    common.phase.set(Phase::Counted);
    sleep(plan.span).await;
    common.phase.set(Phase::Over);
    let (took, client, server) = (watch.elapsed(), processor_time().saturating_sub(ran), cpu.until_now()?);
    while let Some(done) = sending.join_next().await {
        done.context("a connection did not reach its end")??;
    }
    let sent = common.next.get() - turns_from;
    let runs = if plan.keys == Keys::Done { REPLAYED_KEYS } else { sent };
    let next = plan.first + REPLAYED_KEYS.max(sent);
    ensure!(!common.waits.borrow().is_empty(), "nothing was answered in time: ask for longer windows");
    Ok(summed(&common.waits.borrow(), took, (server, client), (runs, next)))
}

#[expect(clippy::cast_precision_loss, reason = "a rate is read to three digits")]
fn summed(
    waits: &Histogram<u64>,
    took: Duration,
    (server, client): (Duration, Duration),
    (runs, next): (u64, u64),
) -> Window {
    let answered = waits.len() as f64;
    Window {
        rate: answered / took.as_secs_f64(),
        p50_us: waits.value_at_quantile(0.5) as f64,
        p99_us: waits.value_at_quantile(0.99) as f64,
        server_cpu_us: server.as_secs_f64() * 1e6 / answered,
        client_cpu_us: client.as_secs_f64() * 1e6 / answered,
        runs,
        next,
    }
}

/// Runs every key that is to be replayed once, all connections together.
async fn load(connections: Vec<Connection>) -> Result<Vec<Connection>> {
    let mut loading = JoinSet::new();
    for connection in connections {
        loading.spawn_local(connection.load());
    }
    let mut loaded = Vec::new();
    while let Some(connection) = loading.join_next().await {
        loaded.push(connection.context("a connection did not reach its end")??);
    }
    Ok(loaded)
}

struct Connection {
    common: Rc<Common>,
    stream: TcpStream,
    request: Request,
    answer: Answer,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(common: &Rc<Common>) -> Result<Self> {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, common.plan.port));
        let stream = TcpStream::connect(at).await.with_context(|| format!("nobody is at {at}"))?;
        stream.set_nodelay(true)?;
        let request = Request::new(common.plan.keys != Keys::None)?;
        Ok(Self {
            common: Rc::clone(common),
            stream,
            request,
            answer: Answer::new()?,
            buffer: vec![0; ANSWER_BYTES_MAX],
        })
    }

    async fn load(mut self) -> Result<Self> {
        let first = self.common.plan.first;
        while self.common.next.get() < first + REPLAYED_KEYS {
            let number = self.turn();
            let (run, is_replay) = self.ask(number).await?;
            ensure!(!is_replay, "key {number} was replayed, and nobody had it");
            self.common.done.borrow_mut()[usize::try_from(number - first)?] = Some(run);
        }
        Ok(self)
    }

    async fn work(mut self) -> Result<()> {
        let Plan { keys, first, .. } = self.common.plan;
        while self.common.phase.get() != Phase::Over {
            let turn = self.turn();
            let number = if keys == Keys::Done { first + turn % REPLAYED_KEYS } else { turn };
            let watch = Stopwatch::start();
            let (run, is_replay) = self.ask(number).await?;
            if self.common.phase.get() == Phase::Counted {
                let waited = u64::try_from(watch.elapsed().as_micros())?;
                self.common.waits.borrow_mut().record(waited)?;
            }
            match keys {
                Keys::None | Keys::New => {
                    ensure!(!is_replay, "request {number} was replayed, and nobody had it");
                }
                Keys::Done => {
                    let first_run = self.common.done.borrow()[usize::try_from(number - first)?];
                    ensure!(
                        is_replay && Some(run) == first_run,
                        "key {number} is not that of its first run: {run:?}"
                    );
                }
            }
        }
        Ok(())
    }

    fn turn(&self) -> u64 {
        self.common.next.replace(self.common.next.get() + 1)
    }

    /// Sends a request, and answers which run its answer is of, and whether it is a replay.
    async fn ask(&mut self, number: u64) -> Result<(Run, bool)> {
        self.stream.write_all(self.request.of(number)).await?;
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..]).await?;
            ensure!(read > 0, "request {number}: hung up after {}", shown(&self.buffer[..filled]));
            filled += read;
            let bytes = &self.buffer[..filled];
            let Some(head) = Head::read(bytes)? else { continue };
            if filled < head.bytes + head.body_bytes {
                continue;
            }
            ensure!(
                head.status == CREATED && filled == head.bytes + head.body_bytes,
                "request {number} was answered with {}",
                shown(bytes)
            );
            return Ok((self.answer.run(number, &bytes[head.bytes..])?, head.is_replay));
        }
    }
}

/// How often the handler on this port ran.
pub(super) fn runs(port: u16) -> Result<u64> {
    let mut stream = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.write_all(
        format!("GET {RUNS} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let Some(head) = Head::read(&bytes)?.filter(|head| head.status == OK) else {
        bail!("the runs are not told: {}", shown(&bytes));
    };
    shown(&bytes[head.bytes..]).parse().context("runs are a number")
}
