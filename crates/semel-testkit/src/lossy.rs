//! A way to a server on which answers are lost, and what must hold when they are.
//!
//! A reply that was lost is unknown, never failed. The proxy stands between a store's client and its server, whatever they
//! speak: it hands a request on and, when the server has answered, cuts the connection instead of handing the answer back.
//!
//! - [`LossyProxy`]: the way, and what is to go wrong on it.
//! - [`lost_replies`]: every command, one after the other, with its answer lost and its request dropped.
//! - [`lost_at_random`]: many callers at once, with one answer in some lost, and a [ledger](crate::endurance) of what they were told.
//! - [`LostReplies`]: the result.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use semel::machine::claim::Ask;
use semel::record::{Keep, PermitId, Record, State, Version};
use semel::store::{Filter, Reply, Scan, Store, Swap, SwapReplies, SwapReply, Swaps};
use semel::{
    Claim, ClaimedAll, Decision, ErrorKind, Key, OnceError, Outcome, Permit, RecordId, RecordedOnce,
    ReleaseAnswer, Resolution, Resolved, Result, Semel,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::endurance::{Endurance, Losses};
use crate::sample;

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It is handed on, and its answer handed back.
    None,
    /// The server answers, and the connection is cut instead of handing that back.
    LoseAnswer,
    /// The connection is cut before the server hears of it.
    DropRequest,
    /// It is handed on so much later.
    Delay(Duration),
}

/// A loopback address that leads to a server, and loses what it is told to. Gone when dropped.
pub struct LossyProxy {
    address: SocketAddr,
    way: Arc<Way>,
    accepting: JoinHandle<()>,
}

/// What all connections share.
#[derive(Default)]
struct Way {
    faults: Mutex<Faults>,
    forwarded: AtomicU64,
    lost: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Faults {
    /// What happens once, and how many requests go well before that.
    once: Option<(u64, Fault)>,
    at_random: Option<(f64, StdRng)>,
}

impl LossyProxy {
    /// Opens a way to the server at `upstream`.
    pub async fn start(upstream: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, way) = (listener.local_addr()?, Arc::<Way>::default());
        let shared = Arc::clone(&way);
        let accepting = tokio::spawn(async move {
            // Dropped with this task, and then every connection is.
            let mut links = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                links.spawn(link(client, upstream, Arc::clone(&shared)));
                while links.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, way, accepting })
    }

    /// Where clients are to connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next request is handed on and done, and its answer is lost with the connection.
    ///
    /// A request is what a client sends in one go. If others are on their way on the same connection, their answers are
    /// lost with it.
    pub fn lose_next_answer(&self) {
        self.lose_answer_after(0);
    }

    /// The same, after so many requests that go well.
    pub fn lose_answer_after(&self, requests: u64) {
        self.way.faults().once = Some((requests, Fault::LoseAnswer));
    }

    /// The next request never arrives, and its connection is cut.
    pub fn drop_next_request(&self) {
        self.drop_request_after(0);
    }

    /// The same, after so many requests that go well.
    pub fn drop_request_after(&self, requests: u64) {
        self.way.faults().once = Some((requests, Fault::DropRequest));
    }

    /// The next request arrives so much later.
    pub fn delay_next_request(&self, delay: Duration) {
        self.way.faults().once = Some((0, Fault::Delay(delay)));
    }

    /// From now on answers are lost with this probability, as the seed says.
    pub fn lose_answers(&self, probability: f64, seed: u64) {
        let rng = StdRng::seed_from_u64(seed);
        self.way.faults().at_random = Some((probability.clamp(0.0, 1.0), rng));
    }

    /// From now on nothing goes wrong.
    pub fn lose_nothing(&self) {
        *self.way.faults() = Faults::default();
    }

    /// How many requests were handed on.
    pub fn forwarded(&self) -> u64 {
        self.way.forwarded.load(Ordering::Relaxed)
    }

    /// How many answers were lost after the server had given them.
    pub fn lost(&self) -> u64 {
        self.way.lost.load(Ordering::Relaxed)
    }

    /// How many requests never arrived.
    pub fn dropped(&self) -> u64 {
        self.way.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for LossyProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Way {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to become of the next request.
    fn next_fault(&self) -> Fault {
        let mut faults = self.faults();
        match &mut faults.once {
            Some((0, fault)) => {
                let fault = *fault;
                faults.once = None;
                return fault;
            }
            Some((before, _)) => *before = before.saturating_sub(1),
            None => {}
        }
        let Some((probability, rng)) = &mut faults.at_random else { return Fault::None };
        if rng.random_bool(*probability) { Fault::LoseAnswer } else { Fault::None }
    }
}

/// How much is read in one go: more than most requests have, so that one is counted once.
const CHUNK_BYTES: usize = 64 << 10;

/// Hands bytes on both ways until either side is gone or a fault cuts them both off.
async fn link(client: TcpStream, upstream: SocketAddr, way: Arc<Way>) {
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    // A proxy that waits to fill its packets would measure itself.
    drop((client.set_nodelay(true), server.set_nodelay(true)));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let losing = AtomicBool::new(false);
    // Whichever ends first takes the other along: both sockets are closed.
    tokio::select! {
        _ = requests(from_client, to_server, &way, &losing) => {}
        _ = answers(from_server, to_client, &way, &losing) => {}
    }
}

async fn requests(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    way: &Way,
    losing: &AtomicBool,
) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = client.read(&mut chunk).await?;
        let request = chunk.get(..count).filter(|bytes| !bytes.is_empty());
        let Some(request) = request else { return Ok(()) };
        match way.next_fault() {
            Fault::None => {}
            // Noted before the server can answer.
            Fault::LoseAnswer => losing.store(true, Ordering::Release),
            Fault::DropRequest => {
                way.dropped.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Fault::Delay(delay) => tokio::time::sleep(delay).await,
        }
        server.write_all(request).await?;
        way.forwarded.fetch_add(1, Ordering::Relaxed);
    }
}

async fn answers(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    way: &Way,
    losing: &AtomicBool,
) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = server.read(&mut chunk).await?;
        let answer = chunk.get(..count).filter(|bytes| !bytes.is_empty());
        let Some(answer) = answer else { return Ok(()) };
        if losing.load(Ordering::Acquire) {
            way.lost.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        client.write_all(answer).await?;
    }
}

/// How often a command is tried with each loss.
const ROUNDS: u64 = 6;
/// How many tries that may take: a client also sends what no command asked for.
const TRIES_MAX: u64 = 40;
/// How long the load may take for its answers before it is taken for stuck.
const LOAD_TIMEOUT: Duration = Duration::from_mins(2);
const CALLERS: usize = 8;

/// Loses the answer of every command after the server has given it, and drops its request before, and looks whether callers
/// that ask again get what they should: one run, one outcome, no key that is stuck.
///
/// `through` leads to the server by way of the proxy, `direct` past it.
pub async fn lost_replies(
    through: &Arc<dyn Store>,
    direct: &Arc<dyn Store>,
    proxy: &LossyProxy,
) -> Result<LostReplies> {
    let mut report = LostReplies::default();
    let observed = Arc::new(Observed::new(Arc::clone(through), Arc::clone(direct)));
    let through: Arc<dyn Store> = Arc::clone(&observed) as _;
    for command in Command::ALL {
        let mut tried = Tried { command: command.name(), lost: 0, dropped: 0, landed: 0 };
        for loss in [Loss::Answer, Loss::Request] {
            let mut trial = Trial {
                through: engine(&through)?,
                direct: engine(direct)?,
                store: &through,
                store_direct: direct,
                proxy,
                loss,
                after: 0,
            };
            let fault = rounds(command, &mut trial, &mut tried, &observed).await.err();
            report.faults.extend(fault.map(|fault| format!("{} ({loss:?} lost): {fault}", command.name())));
        }
        report.tried.push(tried);
    }
    Ok(report)
}

async fn rounds(command: Command, trial: &mut Trial<'_>, tried: &mut Tried, observed: &Observed) -> Tested {
    let before = (trial.proxy.lost(), trial.proxy.dropped(), observed.landed());
    let mut tested = Ok(());
    for number in 0..TRIES_MAX {
        trial.after = number % command.requests();
        tested = command.test(trial).await;
        trial.proxy.lose_nothing();
        let hits = trial.proxy.lost() - before.0 + trial.proxy.dropped() - before.1;
        // What was lost may also have been the answer to a client that only said hello.
        let seen =
            trial.loss == Loss::Request || !command.swaps() || observed.landed() - before.2 >= ROUNDS / 2;
        if tested.is_err() || (hits >= ROUNDS && seen) {
            break;
        }
    }
    tried.lost += trial.proxy.lost() - before.0;
    tried.dropped += trial.proxy.dropped() - before.1;
    tried.landed += observed.landed() - before.2;
    tested?;
    if trial.loss == Loss::Answer && command.swaps() && tried.landed == 0 {
        return Err("was never seen to have taken, so nothing is proved".to_owned());
    }
    Ok(())
}

/// Has callers claim and complete until so many answers are acknowledged, with answers lost at this probability, and holds what
/// they were told against the store. Nothing may be lost, doubled or stuck.
pub async fn lost_at_random(
    through: &Arc<dyn Store>,
    direct: &Arc<dyn Store>,
    proxy: &LossyProxy,
    seed: u64,
    (answers, probability): (u64, f64),
) -> Result<Losses> {
    proxy.lose_answers(probability, seed);
    let load = Endurance::start(through, seed, CALLERS)?;
    load.until_acknowledged(answers, LOAD_TIMEOUT).await;
    proxy.lose_nothing();
    load.stop().await.verify(direct).await
}

/// How long a caller asks again before its key is taken for stuck. A client may wait a moment before it connects anew.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// What a trial has come to; the error says what went wrong.
type Tested<T = ()> = std::result::Result<T, String>;

/// What goes wrong with the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Answer,
    Request,
}

/// One trial of one command.
struct Trial<'a> {
    through: Semel,
    direct: Semel,
    store: &'a Arc<dyn Store>,
    store_direct: &'a Arc<dyn Store>,
    proxy: &'a LossyProxy,
    loss: Loss,
    /// How many requests of the command go well before that.
    after: u64,
}

/// An engine that remembers nothing by itself, so that every replay asks the store, and sends nothing unasked, so that the
/// request that is lost is the command's.
fn engine(store: &Arc<dyn Store>) -> Result<Semel> {
    let builder = Semel::builder_shared(Arc::clone(store)).lease(sample::LONG).retention(sample::LONG);
    builder.replays_kept(0, 0).no_sweep().build()
}

impl Trial<'_> {
    /// Has the next request go wrong, or one soon after it.
    fn arm(&self) {
        match self.loss {
            Loss::Answer => self.proxy.lose_answer_after(self.after),
            Loss::Request => self.proxy.drop_request_after(self.after),
        }
    }

    /// Asks with the answer lost, and again as a caller should: what may have happened is asked for as it was, and what
    /// the store says did not happen must not have happened.
    async fn ask<T, F>(&self, key: &Key, mut ask: impl FnMut() -> F) -> Tested<T>
    where
        F: Future<Output = Result<T>>,
    {
        let before = self.record(key).await?;
        self.arm();
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                self.is_unchanged(key, before.as_ref()).await?;
            }
            Err(error) if error.kind() == ErrorKind::Unknown => {}
            Err(error) => return Err(format!("was told {error:?}")),
        }
        patiently(ask).await
    }

    /// Whoever is told that nothing happened may rely on it.
    async fn is_unchanged(&self, key: &Key, before: Option<&Record>) -> Tested {
        let after = self.record(key).await?;
        if before.map(|record| record.version) == after.as_ref().map(|record| record.version) {
            return Ok(());
        }
        Err(format!("was told that nothing happened, and it did: {after:?}"))
    }

    /// The record as it is on the server.
    async fn record(&self, key: &Key) -> Tested<Option<Record>> {
        let found = self.store_direct.load(vec![key.id()]).await.map_err(|error| format!("{error:?}"))?;
        found.record().map_err(|error| format!("{error:?}"))
    }

    /// A permit that was granted while nothing went wrong; the connection is warm after that.
    async fn granted(&self, key: &Key) -> Tested<Permit> {
        let permit_id = sample::permit_id();
        run(patiently(|| self.through.claim(Claim::new(key).permit_id(permit_id))).await)
    }

    /// The key runs under this permit, as its first attempt, and is nobody else's.
    async fn runs_once(&self, key: &Key, permit_id: PermitId) -> Tested {
        let found = self.record(key).await?.ok_or("a run was granted and there is no record")?;
        let mine = matches!(&found.state, State::Running(running) if running.grant.permit_id == permit_id);
        if !mine || found.attempt != 1 {
            return Err(format!("a run was granted and the record is {found:?}"));
        }
        match self.direct.claim(Claim::new(key)).await {
            Ok(Decision::Busy(_)) => Ok(()),
            other => Err(format!("a second caller was told {other:?} while the first ran")),
        }
    }

    /// Ends the run without any fault and has it replayed: the key is not stuck.
    async fn ends_well(&self, permit: &Permit) -> Tested {
        let outcome = Outcome::success("in the end");
        patiently(|| permit.complete(outcome.clone())).await?;
        self.replays(permit.key(), &outcome).await
    }

    /// Everybody is told this outcome.
    async fn replays(&self, key: &Key, outcome: &Outcome) -> Tested {
        match self.direct.claim(Claim::new(key)).await {
            Ok(Decision::Replay(replay)) if replay.outcome() == outcome => Ok(()),
            other => Err(format!("the outcome is not replayed: {other:?}")),
        }
    }

    /// The key can be claimed by anybody, as this attempt.
    async fn is_free(&self, key: &Key, attempt: u32) -> Tested {
        let permit = run(self.direct.claim(Claim::new(key)).await.map_err(|error| format!("{error:?}")))?;
        if permit.attempt() != attempt {
            return Err(format!("attempt {} came next, not {attempt}", permit.attempt()));
        }
        permit.complete(Outcome::success("")).await.map_err(|error| format!("could not complete: {error:?}"))
    }
}

/// Asks as it is asked, again and again, until there is an answer.
async fn patiently<T, F>(mut ask: impl FnMut() -> F) -> Tested<T>
where
    F: Future<Output = Result<T>>,
{
    let until = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) if ![ErrorKind::Unknown, ErrorKind::Unavailable].contains(&error.kind()) => {
                return Err(format!("was told {error:?}"));
            }
            Err(error) if Instant::now() > until => return Err(format!("never got an answer: {error:?}")),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// The permit, if there is one.
fn run(decision: Tested<Decision>) -> Tested<Permit> {
    let decision = decision?;
    let Decision::Run(permit) = decision else {
        return Err(format!("was told {decision:?} instead of to run"));
    };
    Ok(permit)
}

/// A new key, in words that a trial can pass on.
fn key(operation: &str) -> Tested<Key> {
    sample::key(operation).map_err(|error| error.to_string())
}

/// What a caller can ask of an engine or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Swap,
    Claim,
    Complete,
    Release,
    Renew,
    Step,
    RecordOnce,
    ResolveDone,
    ResolveRelease,
    ClaimAll,
    CompleteAll,
    ReleaseAll,
    RenewAll,
    Get,
    Scan,
    Sweep,
}

impl Command {
    const ALL: [Self; 16] = [
        Self::Swap,
        Self::Claim,
        Self::Complete,
        Self::Release,
        Self::Renew,
        Self::Step,
        Self::RecordOnce,
        Self::ResolveDone,
        Self::ResolveRelease,
        Self::ClaimAll,
        Self::CompleteAll,
        Self::ReleaseAll,
        Self::RenewAll,
        Self::Get,
        Self::Scan,
        Self::Sweep,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Swap => "swap",
            Self::Claim => "claim",
            Self::Complete => "complete",
            Self::Release => "release",
            Self::Renew => "renew",
            Self::Step => "step",
            Self::RecordOnce => "record_once",
            Self::ResolveDone => "resolve as done",
            Self::ResolveRelease => "resolve as released",
            Self::ClaimAll => "claim_all",
            Self::CompleteAll => "complete_all",
            Self::ReleaseAll => "release_all",
            Self::RenewAll => "renew_all",
            Self::Get => "get",
            Self::Scan => "scan",
            Self::Sweep => "sweep",
        }
    }

    /// How many requests it takes when nothing goes wrong. Each of them can be the one that is lost.
    fn requests(self) -> u64 {
        match self {
            Self::ResolveDone | Self::ResolveRelease => 2,
            // What another call left half done is looked for first.
            Self::ClaimAll => 4,
            Self::Swap
            | Self::Claim
            | Self::Complete
            | Self::Release
            | Self::Renew
            | Self::Step
            | Self::RecordOnce
            | Self::CompleteAll
            | Self::ReleaseAll
            | Self::RenewAll
            | Self::Get
            | Self::Scan
            | Self::Sweep => 1,
        }
    }

    /// Whether it swaps, so that it can be seen whether that took.
    fn swaps(self) -> bool {
        !matches!(self, Self::Get | Self::Scan | Self::Sweep)
    }

    /// Tries it once.
    async fn test(self, trial: &Trial<'_>) -> Tested {
        match self {
            Self::Swap => swap(trial).await,
            Self::Claim => claim(trial).await,
            Self::Complete => complete(trial).await,
            Self::Release => release(trial).await,
            Self::Renew => renew(trial).await,
            Self::Step => step(trial).await,
            Self::RecordOnce => record_once(trial).await,
            Self::ResolveDone => resolve_done(trial).await,
            Self::ResolveRelease => resolve_release(trial).await,
            Self::ClaimAll => claim_all(trial).await,
            Self::CompleteAll => complete_all(trial).await,
            Self::ReleaseAll => release_all(trial).await,
            Self::RenewAll => renew_all(trial).await,
            Self::Get => get(trial).await,
            Self::Scan => scan(trial).await,
            Self::Sweep => sweep(trial).await,
        }
    }
}

/// A swap of the store itself: if it took, nobody may be told that it did not.
async fn swap(trial: &Trial<'_>) -> Tested {
    let key = key("lost-swap")?;
    let ask = Ask { key: key.clone(), ..sample::ask(&key) };
    let write = sample::running(&ask).map_err(|error| error.to_string())?;
    trial.arm();
    let answer = trial.store.swap([Swap { expected: None, next: write.next, keep: write.keep }].into()).await;
    let found = trial.record(&key).await?;
    match answer {
        Err(error) if error.kind() == ErrorKind::Unknown => {}
        Err(error) if error.kind() == ErrorKind::Unavailable && found.is_none() => {}
        Err(error) => return Err(format!("was told {error:?}, and the record is {found:?}")),
        Ok(answer) => {
            let told = answer.value.into_iter().next();
            let (Some(SwapReply::Swapped(record) | SwapReply::Stale(Some(record))), Some(found)) =
                (&told, &found)
            else {
                return Err(format!("was told {told:?}, and the record is {found:?}"));
            };
            if **record != *found {
                return Err(format!("was told {record:?}, and the record is {found:?}"));
            }
        }
    }
    let permit = run(patiently(|| trial.through.claim(Claim::new(&key).permit_id(ask.permit_id))).await)?;
    trial.runs_once(&key, ask.permit_id).await?;
    trial.ends_well(&permit).await
}

async fn claim(trial: &Trial<'_>) -> Tested {
    let (key, permit_id) = (key("lost-claim")?, sample::permit_id());
    let decision = trial.ask(&key, || trial.through.claim(Claim::new(&key).permit_id(permit_id))).await?;
    let permit = run(Ok(decision))?;
    trial.runs_once(&key, permit_id).await?;
    trial.ends_well(&permit).await
}

async fn complete(trial: &Trial<'_>) -> Tested {
    let key = key("lost-complete")?;
    let permit = trial.granted(&key).await?;
    let outcome = Outcome::success("paid");
    trial.ask(&key, || permit.complete(outcome.clone())).await?;
    trial.replays(&key, &outcome).await
}

async fn release(trial: &Trial<'_>) -> Tested {
    let key = key("lost-release")?;
    let permit = trial.granted(&key).await?;
    match trial.ask(&key, || permit.release("later")).await? {
        ReleaseAnswer::Released => trial.is_free(&key, 2).await,
        ReleaseAnswer::NotHolding => Err("was told that its own release did not take".to_owned()),
    }
}

async fn renew(trial: &Trial<'_>) -> Tested {
    let key = key("lost-renew")?;
    let permit = trial.granted(&key).await?;
    let granted = trial.record(&key).await?;
    trial.ask(&key, || permit.renew()).await?;
    let renewed = trial.record(&key).await?;
    if renewed.as_ref().map(|record| record.changed_at) <= granted.as_ref().map(|record| record.changed_at) {
        return Err(format!("the lease was not renewed: {renewed:?}"));
    }
    trial.runs_once(&key, permit.id()).await?;
    trial.ends_well(&permit).await
}

async fn step(trial: &Trial<'_>) -> Tested {
    let key = key("lost-step")?;
    let permit = trial.granted(&key).await?;
    let step = || async {
        let stored = permit.step("charge", || async { Ok::<_, Infallible>(7) }).await;
        stored.map_err(|error| match error {
            OnceError::Engine(error) => error,
            other @ (OnceError::Work(_) | OnceError::WorkBefore(_)) => {
                semel::Error::new(ErrorKind::Invalid, other.to_string())
            }
        })
    };
    trial.ask(&key, step).await?;
    let found = trial.record(&key).await?;
    let steps = found.as_ref().map_or(0, |record| record.steps().len());
    if steps != 1 {
        return Err(format!("{steps} steps are stored instead of one: {found:?}"));
    }
    trial.runs_once(&key, permit.id()).await?;
    trial.ends_well(&permit).await
}

async fn record_once(trial: &Trial<'_>) -> Tested {
    let (key, permit_id, outcome) = (key("lost-record")?, sample::permit_id(), Outcome::success("seen"));
    let record = || trial.through.record_once(Claim::new(&key).permit_id(permit_id), outcome.clone());
    match trial.ask(&key, record).await? {
        RecordedOnce::Recorded(_) => trial.replays(&key, &outcome).await,
        other @ (RecordedOnce::Replay(_)
        | RecordedOnce::Busy(_)
        | RecordedOnce::Mismatch(_)
        | RecordedOnce::Held(_)) => Err(format!("was told {other:?} of its own outcome")),
    }
}

/// A record that is held, since its only attempt was given up.
async fn held(trial: &Trial<'_>) -> Tested<semel::Key> {
    let key = key("lost-resolve")?;
    let permit = trial.granted(&key).await?;
    patiently(|| permit.release("gave up")).await?;
    let decision = patiently(|| trial.through.claim(Claim::new(&key).attempts_max(1))).await?;
    if !matches!(decision, Decision::Held(_)) {
        return Err(format!("was told {decision:?} instead of held"));
    }
    Ok(key)
}

async fn resolve_done(trial: &Trial<'_>) -> Tested {
    let (key, outcome) = (held(trial).await?, Outcome::success("it landed"));
    match trial.ask(&key, || trial.through.resolve(&key, Resolution::Done(outcome.clone()))).await? {
        Resolved::Resolved => trial.replays(&key, &outcome).await,
        Resolved::NotHeld => Err("was told that its own resolution did not take".to_owned()),
    }
}

async fn resolve_release(trial: &Trial<'_>) -> Tested {
    let key = held(trial).await?;
    let resolution = || Resolution::Release { reason: "it did not land".into() };
    match trial.ask(&key, || trial.through.resolve(&key, resolution())).await? {
        Resolved::Resolved => trial.is_free(&key, 2).await,
        Resolved::NotHeld => Err("was told that its own resolution did not take".to_owned()),
    }
}

async fn claim_all(trial: &Trial<'_>) -> Tested {
    let keys = [key("lost-all")?, key("lost-all")?, key("lost-all")?];
    let permit_id = sample::permit_id();
    let claims = || keys.iter().map(|key| Claim::new(key).permit_id(permit_id)).collect::<Vec<_>>();
    // What was taken may have been given back, and that shows in the records: so none of them is watched for changes.
    let unasked = key("lost-all")?;
    let permits = match trial.ask(&unasked, || trial.through.claim_all(claims())).await? {
        ClaimedAll::Run(permits) => permits,
        refused @ ClaimedAll::Refused { .. } => return Err(format!("was told {refused:?} of its own keys")),
    };
    for permit in &permits {
        let running = trial.record(permit.key()).await?;
        let mine = matches!(
            running.as_ref().map(|record| &record.state),
            Some(State::Running(running)) if running.grant.permit_id == permit_id
        );
        if !mine {
            return Err(format!("one of all is not this caller's: {running:?}"));
        }
        trial.ends_well(permit).await?;
    }
    Ok(())
}

/// Permits of keys that were claimed together while nothing went wrong.
async fn granted_together(trial: &Trial<'_>) -> Tested<Vec<Permit>> {
    let keys = [key("lost-together")?, key("lost-together")?, key("lost-together")?];
    let permit_id = sample::permit_id();
    let claims = || keys.iter().map(|key| Claim::new(key).permit_id(permit_id)).collect();
    match patiently(|| trial.through.claim_all(claims())).await? {
        ClaimedAll::Run(permits) => Ok(permits),
        refused @ ClaimedAll::Refused { .. } => Err(format!("was told {refused:?} of its own keys")),
    }
}

/// The key of one of the permits, to see that what is said not to have happened did not.
fn first_key(permits: &[Permit]) -> Tested<&Key> {
    permits.first().map(Permit::key).ok_or_else(|| "no permit was granted".to_owned())
}

async fn complete_all(trial: &Trial<'_>) -> Tested {
    let (permits, outcome) = (granted_together(trial).await?, Outcome::success("all paid"));
    let complete = || trial.through.complete_all(&permits, outcome.clone());
    trial.ask(first_key(&permits)?, complete).await?;
    for permit in &permits {
        trial.replays(permit.key(), &outcome).await?;
    }
    Ok(())
}

async fn release_all(trial: &Trial<'_>) -> Tested {
    let permits = granted_together(trial).await?;
    let release = || trial.through.release_all(&permits, "later");
    let answers = trial.ask(first_key(&permits)?, release).await?;
    if answers.iter().any(|answer| *answer != ReleaseAnswer::Released) {
        return Err(format!("was told {answers:?} of its own releases"));
    }
    for permit in &permits {
        trial.is_free(permit.key(), 2).await?;
    }
    Ok(())
}

async fn renew_all(trial: &Trial<'_>) -> Tested {
    let permits = granted_together(trial).await?;
    let mut granted = Vec::new();
    for permit in &permits {
        granted.push(trial.record(permit.key()).await?.map(|record| record.changed_at));
    }
    trial.ask(first_key(&permits)?, || trial.through.renew_all(&permits)).await?;
    for (permit, granted_at) in permits.iter().zip(granted) {
        let renewed = trial.record(permit.key()).await?;
        if renewed.as_ref().map(|record| record.changed_at) <= granted_at {
            return Err(format!("the lease was not renewed: {renewed:?}"));
        }
        trial.runs_once(permit.key(), permit.id()).await?;
        trial.ends_well(permit).await?;
    }
    Ok(())
}

async fn get(trial: &Trial<'_>) -> Tested {
    let key = key("lost-get")?;
    let permit = trial.granted(&key).await?;
    trial.ends_well(&permit).await?;
    let stored = trial.record(&key).await?;
    let got = trial.ask(&key, || trial.through.get(&key)).await?;
    let same = got.as_ref().and_then(|record| record.outcome())
        == stored.as_ref().and_then(|record| record.outcome());
    if same { Ok(()) } else { Err(format!("got {got:?}, and the record is {stored:?}")) }
}

async fn scan(trial: &Trial<'_>) -> Tested {
    let key = key("lost-scan")?;
    let permit = trial.granted(&key).await?;
    let filter = Filter { name: Some(key.name().into()), ..Filter::default() };
    let (mut after, mut seen) = (None, 0);
    let mut is_first = true;
    // A page may end early, so the walk goes on to its end; only its first page is lost.
    for _ in 0..10_000 {
        let ask = || trial.through.scan(Scan { filter: filter.clone(), after, limit: 64 });
        let page = if is_first { trial.ask(&key, ask).await? } else { patiently(ask).await? };
        is_first = false;
        seen += page.records.iter().filter(|record| record.key == key).count();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if seen != 1 {
        return Err(format!("a walk through the store saw its record {seen} times"));
    }
    trial.ends_well(&permit).await
}

async fn sweep(trial: &Trial<'_>) -> Tested {
    let (gone, stays) = (key("lost-sweep")?, key("lost-sweep")?);
    let permit = trial.granted(&stays).await?;
    let write = sample::running(&sample::ask(&gone)).map_err(|error| error.to_string())?;
    let keep = Keep::For(Duration::from_millis(1));
    let put = trial.store_direct.swap([Swap { expected: None, next: write.next, keep }].into()).await;
    let put_at = put.map_err(|error| format!("{error:?}"))?.now;
    while trial.store_direct.load(Vec::new()).await.map_err(|error| format!("{error:?}"))?.now
        <= put_at.plus(Duration::from_millis(1))
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    trial.ask(&stays, || trial.through.sweep(1_024)).await?;
    trial.runs_once(&stays, permit.id()).await?;
    trial.ends_well(&permit).await
}

/// A way to a store whose lost swaps are looked after by another way.
struct Observed {
    through: Arc<dyn Store>,
    direct: Arc<dyn Store>,
    landed: Arc<AtomicU64>,
}

impl Observed {
    fn new(through: Arc<dyn Store>, direct: Arc<dyn Store>) -> Self {
        Self { through, direct, landed: Arc::default() }
    }

    /// How many batches of swaps took though their caller was told an error.
    fn landed(&self) -> u64 {
        self.landed.load(Ordering::Relaxed)
    }
}

impl Store for Observed {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let expected: Vec<(RecordId, Option<Version>)> =
            batch.iter().map(|swap| (swap.id(), swap.expected)).collect();
        let (reply, direct) = (self.through.swap(batch), Arc::clone(&self.direct));
        let landed = Arc::clone(&self.landed);
        Reply::later(async move {
            let answer = reply.await;
            if answer.is_err() {
                let found = direct.load(expected.iter().map(|(id, _)| *id).collect()).await?.records()?;
                let version = |found: &Option<Record>| found.as_ref().map(|record| record.version);
                let took =
                    expected.iter().zip(&found).any(|((_, expected), found)| version(found) != *expected);
                landed.fetch_add(u64::from(took), Ordering::Relaxed);
            }
            answer
        })
    }

    crate::delegate!(through: load, sweep, scan);
}

/// What came of every command whose replies were lost.
#[derive(Clone, Debug, Default)]
pub struct LostReplies {
    /// How each command was tried.
    pub tried: Vec<Tried>,
    /// What went wrong, in words for people.
    pub faults: Vec<String>,
}

/// How one command was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// What it is called.
    pub command: &'static str,
    /// How often its answer was lost after the server had given it.
    pub lost: u64,
    /// How often its request never arrived.
    pub dropped: u64,
    /// How often its swap was seen to have taken though its answer was lost. Never, if it swaps nothing.
    pub landed: u64,
}

impl LostReplies {
    /// Whether every command was tried with a lost answer, and none did any harm.
    pub fn are_harmless(&self) -> bool {
        self.faults.is_empty() && self.tried.iter().all(|tried| tried.lost > 0 && tried.dropped > 0)
    }
}

impl fmt::Display for LostReplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Tried { command, lost, dropped, landed } in &self.tried {
            writeln!(
                f,
                "{command}: {lost} answers lost ({landed} seen to have taken), {dropped} requests dropped"
            )?;
        }
        self.faults.iter().try_for_each(|fault| writeln!(f, "fault: {fault}"))
    }
}
