//! Connections that each go through one cycle after the other, as fast as they are answered, and check every answer. All of
//! them are on one thread, which shares the cores with who is measured.

use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep;

use super::entry::{CONNECTIONS, Entry};
use super::wire;
use crate::http::{Cpu, Head, shown};
use crate::stopwatch::{Stopwatch, processor_time};

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// What a window is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) entry: Entry,
    pub(super) port: u16,
    /// Whose processor time is measured.
    pub(super) pid: u32,
    pub(super) span: Duration,
}

/// What it found out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Keys claimed and completed, or echoes, or `SET NX`.
    pub(super) cycles: f64,
    /// Of one request, or of one batch.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// Processor time of the server, and of this process, for each cycle.
    pub(super) server_cpu_us: f64,
    pub(super) client_cpu_us: f64,
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
    next: Cell<u64>,
    /// Cycles that ended while they counted.
    cycles: Cell<u64>,
    waits: RefCell<Histogram<u64>>,
}

/// Sends for a while, and checks every answer.
pub(super) fn window(plan: Plan) -> Result<Window> {
    let runtime = Builder::new_current_thread().enable_all().build().context("the runtime cannot start")?;
    LocalSet::new().block_on(&runtime, measured(plan))
}

#[expect(clippy::cast_precision_loss, reason = "a rate is read to three digits")]
async fn measured(plan: Plan) -> Result<Window> {
    let common = Rc::new(Common {
        plan,
        phase: Cell::new(Phase::WarmingUp),
        next: Cell::new(0),
        cycles: Cell::new(0),
        waits: RefCell::new(Histogram::new(3)?),
    });
    let mut sending = JoinSet::new();
    for _ in 0..CONNECTIONS {
        sending.spawn_local(Connection::open(&common).await?.work());
    }
    sleep(plan.span / 3).await;
    let (cpu, ran, watch) = (Cpu::of(plan.pid)?, processor_time(), Stopwatch::start());
    common.phase.set(Phase::Counted);
    sleep(plan.span).await;
    common.phase.set(Phase::Over);
    let (took, client, server) = (watch.elapsed(), processor_time().saturating_sub(ran), cpu.until_now()?);
    while let Some(done) = sending.join_next().await {
        done.context("a connection did not reach its end")??;
    }
    let (cycles, waits) = (common.cycles.get() as f64, common.waits.borrow());
    ensure!(cycles > 0.0, "nothing was answered in time: ask for longer windows");
    Ok(Window {
        cycles: cycles / took.as_secs_f64(),
        p50_us: waits.value_at_quantile(0.5) as f64,
        p99_us: waits.value_at_quantile(0.99) as f64,
        server_cpu_us: server.as_secs_f64() * 1e6 / cycles,
        client_cpu_us: client.as_secs_f64() * 1e6 / cycles,
    })
}

struct Connection {
    common: Rc<Common>,
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(common: &Rc<Common>) -> Result<Self> {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, common.plan.port));
        let stream = TcpStream::connect(at).await.with_context(|| format!("nobody is at {at}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { common: Rc::clone(common), stream, buffer: Vec::with_capacity(READ_BYTES) })
    }

    async fn work(mut self) -> Result<()> {
        let entry = self.common.plan.entry;
        let width = wire::width(entry);
        while self.common.phase.get() != Phase::Over {
            let number = self.common.next.replace(self.common.next.get() + width);
            let body = self.ask(&wire::first(entry, number)).await?;
            if let Some(next) = wire::second(entry, number, &self.buffer[body..])? {
                let body = self.ask(&next).await?;
                wire::last(entry, &self.buffer[body..])?;
            }
            if self.common.phase.get() == Phase::Counted {
                self.common.cycles.set(self.common.cycles.get() + width);
            }
        }
        Ok(())
    }

    /// Sends a request, reads its answer into the buffer, and says where its body starts.
    async fn ask(&mut self, request: &[u8]) -> Result<usize> {
        let watch = Stopwatch::start();
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            self.buffer.reserve(READ_BYTES);
            let read = self.stream.read_buf(&mut self.buffer).await?;
            ensure!(read > 0, "hung up after {}", shown(&self.buffer));
            let Some(head) = Head::read(&self.buffer)? else { continue };
            if self.buffer.len() < head.bytes + head.body_bytes {
                continue;
            }
            ensure!(head.status == 200, "{} was answered with {}", shown(request), shown(&self.buffer));
            if self.common.phase.get() == Phase::Counted {
                self.common.waits.borrow_mut().record(u64::try_from(watch.elapsed().as_micros())?)?;
            }
            return Ok(head.bytes);
        }
    }
}
