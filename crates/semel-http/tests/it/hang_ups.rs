//! A client hangs up at each await of an exchange, while its lease lapses, another process takes over, or the store fails.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use semel::Lapse;
use semel_http::{Idempotency, IdempotencyLayer, RequestBody};
use semel_testkit::{PausingStore, Point, Stop};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::world::{World, ruled};

const LEASE: Duration = Duration::from_secs(30);
/// More than the pauses between two tries, less than a third of a lease.
const SOON: Duration = Duration::from_secs(5);
const BODY: &[u8] = b"{\"amount\":4200}";

/// Where the exchange waits when its client hangs up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Await {
    RequestBody,
    BeforeClaim,
    AfterClaim,
    Handler,
    ResponseBody,
    BeforeComplete,
    AfterComplete,
}

impl Await {
    const ALL: [Self; 7] = [
        Self::RequestBody,
        Self::BeforeClaim,
        Self::AfterClaim,
        Self::Handler,
        Self::ResponseBody,
        Self::BeforeComplete,
        Self::AfterComplete,
    ];

    /// The call of the store that this is about: the first swap claims, the second completes.
    fn stop(self, store: &PausingStore) -> Option<Stop> {
        let at = match self {
            Self::BeforeClaim => Point::BeforeSwap.nth(1),
            Self::AfterClaim => Point::AfterSwap.nth(1),
            Self::BeforeComplete => Point::BeforeSwap.nth(2),
            Self::AfterComplete => Point::AfterSwap.nth(2),
            Self::RequestBody | Self::Handler | Self::ResponseBody => return None,
        };
        Some(store.stop_at(at))
    }

    fn is_granted(self) -> bool {
        self > Self::AfterClaim
    }
}

/// What happens after the client hung up, and before the exchange may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// The lease ends.
    Lapse,
    /// The lease ends, and the client sends its request to another process.
    Retry,
    /// The call that is stopped fails, or the next one does, and it is unknown whether it took effect.
    Outage,
}

/// A body that comes when the test says so.
struct Gated {
    gate: Option<oneshot::Receiver<()>>,
    is_read: bool,
}

impl Gated {
    fn open() -> Self {
        Self { gate: None, is_read: false }
    }

    fn behind(gate: oneshot::Receiver<()>) -> Self {
        Self { gate: Some(gate), is_read: false }
    }
}

impl Body for Gated {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(gate) = &mut self.gate {
            std::task::ready!(Pin::new(gate).poll(context)).unwrap_or_default();
            self.gate = None;
        }
        let is_read = std::mem::replace(&mut self.is_read, true);
        Poll::Ready((!is_read).then(|| Ok(Frame::data(Bytes::from_static(BODY)))))
    }
}

/// How many runs there were, and how many at once.
#[derive(Default)]
struct Runs {
    all: AtomicUsize,
    now: AtomicUsize,
    at_once: AtomicUsize,
}

struct OneRun(Arc<Runs>);

impl OneRun {
    fn begin(runs: &Arc<Runs>) -> Self {
        runs.all.fetch_add(1, Ordering::SeqCst);
        let now = runs.now.fetch_add(1, Ordering::SeqCst) + 1;
        runs.at_once.fetch_max(now, Ordering::SeqCst);
        Self(Arc::clone(runs))
    }
}

impl Drop for OneRun {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

type Handler = BoxCloneSyncService<Request<RequestBody<Gated>>, Response<Gated>, Infallible>;
type App = Idempotency<Handler>;
type Gates = Arc<std::sync::Mutex<Option<(Await, oneshot::Receiver<()>)>>>;

/// A process: a layer around a handler that waits at `gates`, if there is one for it.
fn process(layer: &IdempotencyLayer, runs: &Arc<Runs>, gates: Gates) -> App {
    let runs = Arc::clone(runs);
    let service = service_fn(move |_: Request<RequestBody<Gated>>| {
        let (run, gate) = (OneRun::begin(&runs), gates.lock().unwrap().take());
        async move {
            let _run = run;
            let body = match gate {
                Some((Await::ResponseBody, gate)) => Gated::behind(gate),
                Some((_, gate)) => {
                    gate.await.unwrap_or_default();
                    Gated::open()
                }
                None => Gated::open(),
            };
            let mut response = Response::new(body);
            *response.status_mut() = StatusCode::CREATED;
            Ok(response)
        }
    });
    layer.layer(BoxCloneSyncService::new(service))
}

fn request(body: Gated) -> Request<Gated> {
    Request::post("/charges")
        .header("authorization", "Bearer alice")
        .header("idempotency-key", "k")
        .body(body)
        .unwrap()
}

/// What a request is answered: its status, and whether that is a replay.
async fn send(app: &App) -> (u16, bool) {
    let response = app.clone().oneshot(request(Gated::open())).await.unwrap();
    let is_replay = response.headers().contains_key("idempotent-replayed");
    let status = response.status().as_u16();
    let mut body = Box::pin(response.into_body());
    while poll_fn(|context| body.as_mut().poll_frame(context)).await.is_some() {}
    (status, is_replay)
}

/// One client that hangs up at `at`, under a policy, beside something else.
struct Scene {
    at: Await,
    meanwhile: Meanwhile,
    world: World,
    store: PausingStore,
    first: IdempotencyLayer,
    second: IdempotencyLayer,
    runs: Arc<Runs>,
}

impl Scene {
    fn new(at: Await, meanwhile: Meanwhile, lapse: Lapse) -> Self {
        let world = World::new();
        let settings = || {
            ruled(|rules| {
                rules.lease = LEASE;
                rules.lapse = lapse;
            })
        };
        let store = PausingStore::new(Arc::clone(&world.store));
        let first = World::layer_on(Arc::new(store.clone()), settings());
        let second = world.layer(settings());
        Self { at, meanwhile, world, store, first, second, runs: Arc::default() }
    }

    /// Plays the scene, and returns what the client's last retry is answered.
    async fn play(&self) -> (u16, bool) {
        let (open, gate) = oneshot::channel();
        let stop = self.at.stop(&self.store);
        let (body, gate) = match self.at {
            Await::RequestBody => (Gated::behind(gate), None),
            Await::Handler | Await::ResponseBody => (Gated::open(), Some((self.at, gate))),
            Await::BeforeClaim | Await::AfterClaim | Await::BeforeComplete | Await::AfterComplete => {
                (Gated::open(), None)
            }
        };
        let mut first = process(&self.first, &self.runs, Arc::new(std::sync::Mutex::new(gate)));
        let second = process(&self.second, &self.runs, Arc::default());
        let mut exchange = Box::pin(first.call(request(body)));
        // Polled by hand until it stands still where it should.
        for _ in 0..50 {
            let polled = exchange.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending(), "{:?}: it was to hang", self.at);
            tokio::task::yield_now().await;
        }
        assert!(stop.as_ref().is_none_or(Stop::is_reached), "{:?} was never reached", self.at);
        drop(exchange);
        self.happen(&second, stop).await;
        drop(open);
        let ended = timeout(SOON, self.first.none_running()).await;
        assert!(ended.is_ok(), "{:?}, {:?}: a run never ended", self.at, self.meanwhile);
        // The clock is paused: this lets everything that waits for the store, or to ask it again, come to its end.
        tokio::time::sleep(SOON).await;
        // After whatever is left of a lease, for a store that never heard of a release.
        self.world.clock.advance(LEASE * 2);
        send(&second).await
    }

    async fn happen(&self, second: &App, stop: Option<Stop>) {
        match (self.meanwhile, stop) {
            (Meanwhile::Nothing, _) => {}
            (Meanwhile::Lapse, _) => self.world.clock.advance(LEASE * 2),
            (Meanwhile::Retry, _) => {
                self.world.clock.advance(LEASE * 2);
                let (status, is_replay) = send(second).await;
                assert!(!is_replay || self.at == Await::AfterComplete, "{status} of what is not done");
            }
            (Meanwhile::Outage, Some(stop)) => stop.lose_reply(),
            (Meanwhile::Outage, None) => self.store.stop_at(Point::BeforeSwap).lose_reply(),
        }
    }
}

/// Whether the policy lets a second run start while the first goes on: after the lease, under `rerun`.
fn may_overlap(at: Await, meanwhile: Meanwhile, lapse: Lapse) -> bool {
    meanwhile == Meanwhile::Retry && lapse == Lapse::Rerun && at == Await::Handler
}

#[tokio::test(start_paused = true)]
async fn h25_a_hang_up_at_any_await_beside_any_mishap_leaves_one_run_and_a_known_key() {
    for at in Await::ALL {
        for meanwhile in [Meanwhile::Nothing, Meanwhile::Lapse, Meanwhile::Retry, Meanwhile::Outage] {
            for lapse in [Lapse::Hold, Lapse::Rerun] {
                let scene = Scene::new(at, meanwhile, lapse);
                let retry = scene.play().await;
                let what = format!("{at:?}, {meanwhile:?}, {lapse:?}: {retry:?}");
                let runs = [&scene.runs.all, &scene.runs.at_once, &scene.runs.now]
                    .map(|count| count.load(Ordering::SeqCst));
                let [all, at_once, now] = runs;
                assert!(at_once <= 1 || may_overlap(at, meanwhile, lapse), "{at_once} at once; {what}");
                assert_eq!(now, 0, "{what}");
                assert_eq!((scene.first.running(), scene.second.running()), (0, 0), "{what}");
                assert_eq!((scene.first.held_bytes(), scene.second.held_bytes()), (0, 0), "{what}");
                assert_eq!((all, retry), expected(at, meanwhile, lapse), "{what}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_in_time_is_refused_and_its_connection_closed() {
    let scene = Scene::new(Await::RequestBody, Meanwhile::Nothing, Lapse::Hold);
    let mut app = process(&scene.first, &scene.runs, Arc::default());
    let (_never, gate) = oneshot::channel();
    let started_at = Instant::now();
    let refused = app.call(request(Gated::behind(gate))).await.unwrap();
    assert_eq!(started_at.elapsed(), scene.first.settings().body_timeout);
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["connection"]),
        (400, &"close".parse().unwrap())
    );
    drop(refused);
    assert_eq!((scene.runs.all.load(Ordering::SeqCst), scene.first.held_bytes()), (0, 0));
    assert_eq!(send(&app).await, (201, false));
}

/// How many runs there must be in the end, and what the client's last retry must be answered.
fn expected(at: Await, meanwhile: Meanwhile, lapse: Lapse) -> (usize, (u16, bool)) {
    let is_unsettled = at.is_granted() && at < Await::AfterComplete;
    match (meanwhile, lapse) {
        // The retry came after the lease of a run that had not settled: the policy decides.
        (Meanwhile::Retry, Lapse::Hold) if is_unsettled => (1, (409, false)),
        (Meanwhile::Retry, Lapse::Rerun) if is_unsettled => (2, (201, true)),
        // The store knew of a grant that its process had not heard of, and cannot tell that from a run.
        (Meanwhile::Retry, Lapse::Hold) if at == Await::AfterClaim => (0, (409, false)),
        // The outcome was kept, or the retry in between ran.
        _ if at.is_granted() || meanwhile == Meanwhile::Retry => (1, (201, true)),
        // Nothing had run, and the last retry does.
        _ => (1, (201, false)),
    }
}
