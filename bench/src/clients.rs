//! Connections that each send one request after the other, as fast as they are answered, and check every answer.
//!
//! All of them are on one thread. It shares the cores with the server that is measured, so it must be light: a request is a
//! write of bytes, an answer one read. wrk 4.1 was tried beside it on a bare handler: with a script that numbers the keys
//! and looks at the answers it took 14 µs of the processor for a request, where this takes 9.

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
use tokio::time::{Instant, sleep, sleep_until};

use crate::report::{Metric, Sample, float};
use crate::timing::{Cpu, Stopwatch, processor_time};

const READ_BYTES: usize = 64 * 1024;
/// Names of headers that mark a replay, semel's and those of others.
const REPLAYED: [&str; 2] = ["idempotent-replayed", "idempotency-replayed"];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) port: u16,
    /// Whose processor time is measured.
    pub(crate) pid: u32,
    pub(crate) span: Duration,
    pub(crate) pace: Pace,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// On each connection, once the one before is answered.
    Answered,
    /// This many a second, evenly, whatever is answered: each waits from the time at which it is due, also for a free
    /// connection. The timer that they are sent by has a resolution of a millisecond.
    Evenly(f64),
}

/// What one connection sends and expects.
pub(crate) trait Client: 'static {
    /// Sends what must be there before the window.
    async fn prepare(&mut self, _: &mut Connection) -> Result<()> {
        Ok(())
    }

    /// Sends the next requests, checks their answers, and returns how many cycles or requests that counts for.
    async fn turn(&mut self, connection: &mut Connection) -> Result<u64>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    WarmingUp,
    Counted,
    Over,
}

struct Shared {
    phase: Cell<Phase>,
    /// Of turns that ended in the counted phase.
    count: Cell<u64>,
    waits_us: RefCell<Histogram<u64>>,
    pace: Pace,
    /// When requests began to be sent, and how many were.
    sending_since: Cell<Option<Instant>>,
    sent: Cell<u64>,
}

impl Shared {
    fn new(pace: Pace) -> Result<Self> {
        Ok(Self {
            phase: Cell::new(Phase::WarmingUp),
            count: Cell::new(0),
            waits_us: RefCell::new(Histogram::new(3)?),
            pace,
            sending_since: Cell::new(None),
            sent: Cell::new(0),
        })
    }

    /// Waits until the next request is due, and returns when that is or was.
    async fn due(&self) -> Instant {
        let (Pace::Evenly(rate), Some(start)) = (self.pace, self.sending_since.get()) else {
            return Instant::now();
        };
        let number = self.sent.replace(self.sent.get() + 1);
        let due = start + Duration::from_secs_f64(float(number) / rate);
        sleep_until(due).await;
        due
    }
}

/// Lets the clients send for a while, each on a connection of its own.
pub(crate) fn window<C: Client>(plan: Plan, clients: Vec<C>) -> Result<Sample> {
    let runtime = Builder::new_current_thread().enable_all().build().context("the runtime cannot start")?;
    LocalSet::new().block_on(&runtime, measured(plan, clients))
}

async fn measured<C: Client>(plan: Plan, clients: Vec<C>) -> Result<Sample> {
    let shared = Rc::new(Shared::new(plan.pace)?);
    let mut sending = start(plan.port, &shared, clients).await?;
    sleep(plan.span / 3).await;
    // The two clocks are read one right after the other, as they are at the end.
    let (cpu, ran, watch) = (Cpu::of(plan.pid)?, processor_time(), Stopwatch::start());
    shared.phase.set(Phase::Counted);
    sleep(plan.span).await;
    shared.phase.set(Phase::Over);
    let (took, client, server) = (watch.elapsed(), processor_time().saturating_sub(ran), cpu.until_now()?);
    while let Some(done) = sending.join_next().await {
        done.context("a connection did not reach its end")??;
    }
    let (count, waits_us) = (float(shared.count.get()), shared.waits_us.borrow());
    ensure!(count > 0.0, "nothing was answered in time: use longer windows");
    Ok(Sample::from([
        (Metric::PerSecond, count / took.as_secs_f64()),
        (Metric::P50Us, float(waits_us.value_at_quantile(0.5))),
        (Metric::P99Us, float(waits_us.value_at_quantile(0.99))),
        (Metric::P999Us, float(waits_us.value_at_quantile(0.999))),
        (Metric::LongestUs, float(waits_us.max())),
        (Metric::ServerCpuUs, server.as_secs_f64() * 1e6 / count),
        (Metric::ClientCpuUs, client.as_secs_f64() * 1e6 / count),
    ]))
}

/// Connects and prepares all clients, all together, and then lets them send.
async fn start<C: Client>(port: u16, shared: &Rc<Shared>, clients: Vec<C>) -> Result<JoinSet<Result<()>>> {
    let mut preparing = JoinSet::new();
    for mut client in clients {
        let mut connection = Connection::open(port, shared).await?;
        preparing.spawn_local(async move {
            client.prepare(&mut connection).await?;
            anyhow::Ok((client, connection))
        });
    }
    let mut ready = Vec::new();
    while let Some(prepared) = preparing.join_next().await {
        ready.push(prepared.context("a connection did not reach its end")??);
    }
    shared.sending_since.set(Some(Instant::now()));
    let mut sending = JoinSet::new();
    for (mut client, mut connection) in ready {
        let shared = Rc::clone(shared);
        sending.spawn_local(async move {
            while shared.phase.get() != Phase::Over {
                let counts = client.turn(&mut connection).await?;
                if shared.phase.get() == Phase::Counted {
                    shared.count.set(shared.count.get() + counts);
                }
            }
            Ok(())
        });
    }
    Ok(sending)
}

pub(crate) struct Connection {
    shared: Rc<Shared>,
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(port: u16, shared: &Rc<Shared>) -> Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect(address).await.context("cannot connect to the server")?;
        stream.set_nodelay(true)?;
        Ok(Self { shared: Rc::clone(shared), stream, buffer: Vec::with_capacity(READ_BYTES) })
    }

    /// Sends a request, and reads the head and the body of its answer, which must have this status.
    pub(crate) async fn ask(&mut self, request: &[u8], status: u16) -> Result<(Head, &[u8])> {
        let due = self.shared.due().await;
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            self.buffer.reserve(READ_BYTES);
            let read = self.stream.read_buf(&mut self.buffer).await?;
            ensure!(read > 0, "the server hung up after {}", lossy(&self.buffer));
            let Some(head) = Head::read(&self.buffer)? else { continue };
            let end = head.bytes + head.body_bytes;
            if self.buffer.len() < end {
                continue;
            }
            ensure!(
                head.status == status && self.buffer.len() == end,
                "{} was answered with {}",
                lossy(request),
                lossy(&self.buffer)
            );
            if self.shared.phase.get() == Phase::Counted {
                self.shared.waits_us.borrow_mut().record(u64::try_from(due.elapsed().as_micros())?)?;
            }
            return Ok((head, &self.buffer[head.bytes..]));
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) is_replay: bool,
    /// Where the body starts.
    pub(crate) bytes: usize,
    body_bytes: usize,
}

impl Head {
    /// Reads it, if all of it is there.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Self>> {
        let mut head = Self::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(line_end) = line.strip_suffix(b"\r\n") else { return Ok(None) };
            if head.bytes == 0 {
                let status = line_end.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
                head.status = number(status.with_context(|| format!("no status in {}", lossy(line)))?)?;
            }
            head.bytes += line.len();
            if line_end.is_empty() {
                return Ok(Some(head));
            }
            head.read_header(line_end)?;
        }
        Ok(None)
    }

    fn read_header(&mut self, line: &[u8]) -> Result<()> {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return Ok(()) };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            self.body_bytes = number(value)?;
        } else if REPLAYED.iter().any(|replayed| name.eq_ignore_ascii_case(replayed.as_bytes())) {
            self.is_replay = value == b"true";
        }
        Ok(())
    }
}

fn number<N: std::str::FromStr>(digits: &[u8]) -> Result<N> {
    let text = std::str::from_utf8(digits)?;
    text.parse().ok().with_context(|| format!("{text} is not a number"))
}

pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_all_of_it_is_there() {
        let head = |text: &str| Head::read(text.as_bytes()).unwrap();
        let text = "HTTP/1.1 201 Created\r\nContent-Length: 7\r\nidempotent-replayed: true\r\n\r\nabcdefg";
        let whole = Head { status: 201, is_replay: true, bytes: text.len() - 7, body_bytes: 7 };
        assert_eq!(head(text), Some(whole));
        for end in 0..whole.bytes {
            assert_eq!(head(&text[..end]), None, "{end}");
        }
        assert!(!head("HTTP/1.1 201 Created\r\nIdempotency-Replayed: false\r\n\r\n").unwrap().is_replay);
        assert!(Head::read(b"HTTP/1.0 teapot\r\n\r\n").is_err());
    }
}
