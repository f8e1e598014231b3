//! Thousands that dawdle, and a few that do not.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use test_http::{Client, Program, Proxy, Server, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::attacks::ask::{self, Framing};
use crate::attacks::limits;
use crate::attacks::race::{self, Step};
use crate::attacks::waiting::post;

/// How much longer everything may take on a busy machine.
const SLACK: Duration = Duration::from_secs(10);
/// How many connect at once.
const CONNECTING: usize = 128;
/// How many are in a hurry.
const OTHERS: usize = 200;
/// What each connection that dawdles may cost the proxy, and what it may need beside.
const BYTES_EACH_MAX: u64 = 24 << 10;
const BYTES_BESIDE_MAX: u64 = 48 << 20;
const MIB: u64 = 1 << 20;
const CHARGES: &str = "/charges";

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slowed {
    /// How many connections dawdled at the same time.
    pub slow: usize,
    /// How many others were served meanwhile.
    pub served: usize,
    /// The longest that one of them waited.
    pub longest: Duration,
    /// The proxy's memory before, and at most, in bytes.
    pub memory: (u64, u64),
    /// What was allowed at most.
    pub memory_max: u64,
    /// When the last one that dawdled was closed.
    pub closed_after: Duration,
    /// Of so many from one address, how many a bound let in.
    pub of_one_peer: (usize, usize),
    /// The control: why others were not served where connections were too few.
    pub caught: String,
}

impl Slowed {
    /// What was seen while they dawdled.
    fn meanwhile(&self) -> String {
        let Self { served, longest, memory: (before, most), memory_max, .. } = self;
        format!(
            "{served} others were served, the slowest in {} ms; memory {} MiB before, {} MiB at most ({} MiB allowed)",
            longest.as_millis(),
            before / MIB,
            most / MIB,
            memory_max / MIB
        )
    }
}

impl fmt::Display for Slowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slow, closed_after, of_one_peer: (let_in, of), caught, .. } = self;
        let closed_after = closed_after.as_secs();
        write!(
            f,
            "{slow} connections dawdled: {}; all were closed within {closed_after} s; ",
            self.meanwhile()
        )?;
        if *of > 0 {
            write!(f, "a bound let {let_in} of {of} in from one address; ")?;
        }
        write!(f, "with too few connections others were not served ({caught})")
    }
}

/// So many connections dawdle before the binary's proxy.
pub fn slow(binary: &Path, count: usize, step: Step<'_>) -> Result<Slowed> {
    limits::raise(count)?;
    race::runtime()?.block_on(async {
        let mut slowed = attack(binary, count, step).await?;
        slowed.of_one_peer = one_peer(binary, count / 10).await?;
        slowed.caught = control(binary).await?;
        Ok(slowed)
    })
}

/// How long the proxy waits for a head, and between two parts of a body: longer than it takes until all have come.
fn proxy_waits(count: usize) -> Duration {
    Duration::from_secs(5 + count as u64 / 600)
}

pub(super) fn timeouts(count: usize) -> String {
    let seconds = proxy_waits(count).as_secs();
    format!("[timeouts]\nhead = \"{seconds}s\"\nbody = \"{seconds}s\"\nbody_idle = \"{seconds}s\"\n")
}

/// Those that dawdle, all at once.
struct Crowd {
    running: JoinSet<(Where, End)>,
    open: watch::Receiver<usize>,
    stop: watch::Sender<bool>,
}

impl Crowd {
    fn start(target: SocketAddr, path: &'static str, count: usize, from: impl Fn(usize) -> IpAddr) -> Self {
        let room = Arc::new(Semaphore::new(CONNECTING));
        let (opened, open) = watch::channel(0);
        let (stop, stopped) = watch::channel(false);
        let mut running = JoinSet::new();
        for n in 0..count {
            let place = match n / 2 % 4 {
                0 | 1 => Where::Head,
                2 => Where::Body,
                _ => Where::Stalled,
            };
            let one =
                dawdle(target, from(n), path, place, Arc::clone(&room), opened.clone(), stopped.clone());
            running.spawn(async move { (place, one.await) });
        }
        Self { running, open, stop }
    }

    /// Waits until all have connected, or were refused.
    async fn opened(&mut self, count: usize, step: Step<'_>) -> Result<()> {
        let mut known = 0;
        while known < count {
            timeout(SLACK * 5, self.open.changed()).await??;
            let now = *self.open.borrow_and_update();
            (known..now).for_each(|_| step());
            known = now;
        }
        Ok(())
    }

    /// Waits until all were closed, or for so long: how each ended.
    async fn ended(mut self, within: Duration) -> Result<Vec<(Where, End)>> {
        let (until, mut ends) = (Instant::now() + within, Vec::new());
        while let Ok(Some(end)) = tokio::time::timeout_at(until, self.running.join_next()).await {
            ends.push(end?);
        }
        self.stop.send_replace(true);
        while let Some(end) = self.running.join_next().await {
            ends.push(end?);
        }
        Ok(ends)
    }
}

/// A server that is attacked: where, on which path, how much memory it has, and who else asks it.
pub(super) struct Target<'a, S> {
    pub(super) address: SocketAddr,
    pub(super) path: &'static str,
    pub(super) program: &'a Program,
    pub(super) served: S,
}

impl<S: AsyncFn(SocketAddr, usize) -> Result<Duration>> Target<'_, S> {
    /// So many connections dawdle: others are served meanwhile, memory is bounded, and all are closed.
    pub(super) async fn attack(&self, count: usize, step: Step<'_>) -> Result<Slowed> {
        (self.served)(self.address, 20).await?;
        let (before, _) = self.program.memory()?;
        let mut crowd = Crowd::start(self.address, self.path, count, source);
        crowd.opened(count, step).await?;
        let longest = (self.served)(self.address, OTHERS).await?;
        let (_, most) = self.program.memory()?;
        let memory_max = BYTES_BESIDE_MAX + BYTES_EACH_MAX * count as u64;
        ensure!(most <= memory_max, "{} MiB of memory, and {} MiB are allowed", most / MIB, memory_max / MIB);
        let within = proxy_waits(count) * 2 + SLACK;
        let ends = crowd.ended(within).await?;
        let memory = (before, most);
        let mut slowed =
            Slowed { slow: count, served: OTHERS, longest, memory, memory_max, ..Slowed::default() };
        slowed.closed_after =
            closed(&ends, within).with_context(|| format!("meanwhile {}", slowed.meanwhile()))?;
        Ok(slowed)
    }

    /// Where connections are few, and all of them have sent a request and stay open, others must be seen not to be served:
    /// why they were not. (Connections that never sent a request would give way.)
    pub(super) async fn control(&self, few: usize) -> Result<String> {
        let mut open = Vec::new();
        for _ in 0..few {
            let mut stream = TcpStream::connect(self.address).await?;
            let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", self.path, self.address);
            stream.write_all(request.as_bytes()).await?;
            ensure!(stream.read(&mut [0; 4096]).await? > 0, "a request of the control was not answered");
            open.push(stream);
        }
        let Err(error) = (self.served)(self.address, 8).await else {
            bail!("the control was not caught: others were served without a free connection");
        };
        drop(open);
        Ok(format!("{error:#}"))
    }
}

async fn attack(binary: &Path, count: usize, step: Step<'_>) -> Result<Slowed> {
    let upstream = Upstream::counting(Duration::ZERO).await;
    let proxy = Proxy::start(binary, upstream.address, "memory:", &timeouts(count)).await?;
    Target { address: proxy.address, path: CHARGES, program: &proxy, served }.attack(count, step).await
}

/// When the last one was closed. Everybody must have come, and must have been closed by now.
fn closed(ends: &[(Where, End)], within: Duration) -> Result<Duration> {
    let refused = ends.iter().filter(|(_, end)| *end == End::Refused).count();
    ensure!(refused == 0, "{refused} were refused: they did not dawdle all at once");
    for place in [Where::Head, Where::Body, Where::Stalled] {
        let open = ends.iter().filter(|end| **end == (place, End::Open)).count();
        let (waits, within) = (proxy_waits(ends.len()).as_secs(), within.as_secs());
        ensure!(
            open == 0,
            "{open} connections that dawdle ({place:?}) are open {within} s after all had come, where the proxy waits for \
             {waits} s"
        );
    }
    let spans =
        ends.iter().filter_map(|(_, end)| if let End::Closed(span) = end { Some(*span) } else { None });
    Ok(spans.max().unwrap_or_default())
}

/// One address may have so many: of twice as many, the rest is refused, and another address is served.
async fn one_peer(binary: &Path, bound: usize) -> Result<(usize, usize)> {
    let upstream = Upstream::counting(Duration::ZERO).await;
    let rules = format!("[bounds]\nconnections_per_peer_max = {bound}\n{}", timeouts(bound * 2));
    let proxy = Proxy::start(binary, upstream.address, "memory:", &rules).await?;
    let mut crowd =
        Crowd::start(proxy.address, CHARGES, bound * 2, |_| IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
    crowd.opened(bound * 2, &|| ()).await?;
    served(proxy.address, 20).await?;
    // Those that were let in are closed later than all others: long after this.
    sleep(Duration::from_secs(1)).await;
    let ends = crowd.ended(Duration::ZERO).await?;
    let open = ends.iter().filter(|(_, end)| *end == End::Open).count();
    ensure!(open <= bound, "one address has {open} connections, and {bound} are allowed");
    ensure!(open > 0, "one address has no connection left");
    Ok((open, ends.len()))
}

async fn control(binary: &Path) -> Result<String> {
    const FEW: usize = 32;
    let upstream = Upstream::counting(Duration::ZERO).await;
    let rules = format!("[bounds]\nconnections_max = {FEW}\n{}", timeouts(FEW));
    let proxy = Proxy::start(binary, upstream.address, "memory:", &rules).await?;
    Target { address: proxy.address, path: CHARGES, program: &proxy, served }.control(FEW).await
}

/// How soon.
pub(super) const SOON: Duration = Duration::from_secs(2);
const AT_ONCE: usize = 4;

/// The longest that one of so many had to wait, half of them under keys; an error if one was not served soon.
pub(super) async fn served(target: SocketAddr, count: usize) -> Result<Duration> {
    let request = |n: usize| {
        if n.is_multiple_of(2) {
            ask::look("/look", "caller-in-a-hurry")
        } else {
            ask::charge("/charges", "caller-in-a-hurry", &ask::new_key("soon"), Framing::Length)
        }
    };
    all_served(target, (0..count).map(request), 201).await
}

/// The longest that one of the claim server's callers had to wait: half of them look, and half claim.
pub(super) async fn served_claims(target: SocketAddr, count: usize) -> Result<Duration> {
    let request = |n: usize| {
        if n.is_multiple_of(2) {
            return b"GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_vec();
        }
        post("/v1/claim", &format!(r#"{{"operation":"charge","name":"{}"}}"#, ask::new_key("soon")))
    };
    all_served(target, (0..count).map(request), 200).await
}

async fn all_served(
    target: SocketAddr,
    requests: impl Iterator<Item = Vec<u8>>,
    status: u16,
) -> Result<Duration> {
    let one = |request: Vec<u8>| async move {
        let started_at = Instant::now();
        let asked = async { Client::try_connect(target).await?.try_ask(&request).await };
        let answer = timeout(SOON, asked).await;
        Ok::<_, anyhow::Error>((answer??, started_at.elapsed()))
    };
    let mut longest = Duration::ZERO;
    for asked in race::all(AT_ONCE, requests.map(one), &|| ()).await? {
        let (answer, took) = asked?;
        ensure!(answer.status == status, "somebody in a hurry got {} {:?}", answer.status, answer.code());
        longest = longest.max(took);
    }
    Ok(longest)
}

/// So many connections dawdle before the binary's claim server.
pub fn slow_server(binary: &Path, count: usize, step: Step<'_>) -> Result<Slowed> {
    limits::raise(count)?;
    let server = Server::start_with(binary, "memory:", &[], &config(count, ""))?;
    let few =
        Server::start_with(binary, "memory:", &[], &config(FEW, &format!("connections_max = {FEW}\n")))?;
    race::runtime()?.block_on(async {
        let mut slowed = claims(&server).attack(count, step).await?;
        slowed.caught = claims(&few).control(FEW).await?;
        Ok(slowed)
    })
}

/// How few connections the control allows.
const FEW: usize = 32;

fn config(count: usize, bounds: &str) -> String {
    let timeouts = timeouts(count).replace("[timeouts]", "[server.timeouts]");
    format!("[server.bounds]\n{bounds}{timeouts}")
}

fn claims(server: &Server) -> Target<'_, impl AsyncFn(SocketAddr, usize) -> Result<Duration>> {
    Target { address: server.address, path: "/v1/claim", program: server, served: served_claims }
}

/// How long between two bytes.
const BETWEEN_BYTES: Duration = Duration::from_secs(2);

/// Where it dawdles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Where {
    /// A byte of the head now and then.
    Head,
    /// A byte of the body of a covered request now and then.
    Body,
    /// Nothing at all after half a body.
    Stalled,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It never was one: refused, or closed at once.
    Refused,
    /// Closed by the other side, after so long.
    Closed(Duration),
    /// Still open when told to stop.
    Open,
}

/// From which address the n-th comes: every other one from the same.
pub(super) fn source(n: usize) -> IpAddr {
    let last = if n.is_multiple_of(2) { 2 } else { u8::try_from(3 + n / 2 % 200).unwrap_or(3) };
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

/// Dawdles until it is closed, or told to stop. `room` bounds how many connect at once; `open` counts those that did.
pub(super) async fn dawdle(
    target: SocketAddr,
    from: IpAddr,
    path: &str,
    place: Where,
    room: Arc<Semaphore>,
    open: watch::Sender<usize>,
    mut stop: watch::Receiver<bool>,
) -> End {
    let connected = {
        let _place = room.acquire().await;
        Client::try_connect_from(from, target).await
    };
    let (start, drip) = parts(place, path);
    let Ok(mut connection) = connected else {
        open.send_modify(|open| *open += 1);
        return End::Refused;
    };
    let is_sent = connection.try_write(&start).await.is_ok();
    open.send_modify(|open| *open += 1);
    if !is_sent {
        return End::Refused;
    }
    let started_at = Instant::now();
    let mut bytes = [0_u8; 512];
    loop {
        tokio::select! {
            read = timeout(BETWEEN_BYTES, connection.stream().read(&mut bytes)) => match read {
                Ok(Ok(0) | Err(_)) => return End::Closed(started_at.elapsed()),
                // What it is told does not matter to it.
                Ok(Ok(_)) => {}
                Err(_) if drip.is_empty() => {}
                Err(_) => if connection.stream().write_all(&drip).await.is_err() {
                    return End::Closed(started_at.elapsed());
                },
            },
            () = async { drop(stop.wait_for(|stop| *stop).await) } => return End::Open,
        }
    }
}

/// What is sent at once, and what is sent now and then.
fn parts(place: Where, path: &str) -> (Vec<u8>, Vec<u8>) {
    let key = ask::new_key("slow");
    let head = |length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer caller-that-dawdles\r\n\
             Content-Type: application/json\r\nIdempotency-Key: {key}\r\nContent-Length: {length}\r\n\r\n{{\"a\":"
        )
    };
    match place {
        Where::Head => {
            (format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ").into_bytes(), b"a".to_vec())
        }
        Where::Body => (head(100_000).into_bytes(), b"1".to_vec()),
        Where::Stalled => (head(100_000).into_bytes(), Vec::new()),
    }
}
