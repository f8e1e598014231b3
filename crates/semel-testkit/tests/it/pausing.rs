//! A call stops where a test says, goes on or fails as the test says, and is otherwise left alone.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use semel::store::{MemoryStore, Reply, Store, Swap, SwapReplies, SwapReply};
use semel::{Claim, Decision, ErrorKind, RecordId, Result, Semel};
use semel_testkit::{Call, PausingStore, Point, sample};
use tokio::task::JoinHandle;

fn open() -> (Arc<MemoryStore>, PausingStore) {
    let memory = Arc::new(MemoryStore::new());
    let store = PausingStore::new(Arc::clone(&memory) as Arc<dyn Store>);
    (memory, store)
}

fn swap() -> Swap {
    let write = sample::running(&sample::ask(&sample::key("pausing").unwrap())).unwrap();
    Swap { expected: None, next: write.next, keep: write.keep }
}

fn swapping(store: &PausingStore, swaps: &[Swap]) -> JoinHandle<Result<SwapReplies>> {
    let (store, batch) = (store.clone(), swaps.iter().cloned().collect());
    tokio::spawn(async move { Ok(store.swap(batch).await?.value) })
}

fn poll<T: Unpin>(reply: &mut Reply<T>) -> Poll<Result<()>> {
    let polled = Pin::new(reply).poll(&mut Context::from_waker(Waker::noop()));
    polled.map(|answer| answer.map(drop))
}

async fn is_there(store: &MemoryStore, id: RecordId) -> bool {
    store.load(vec![id]).await.unwrap().record().unwrap().is_some()
}

fn took(replies: &SwapReplies) -> bool {
    replies.iter().all(|reply| matches!(reply, SwapReply::Swapped(_)))
}

#[tokio::test(start_paused = true)]
async fn a_swap_that_stopped_before_the_store_has_not_been_done() {
    let (memory, store) = open();
    let (stop, swap) = (store.stop_at(Point::BeforeSwap), swap());
    let swapping = swapping(&store, std::slice::from_ref(&swap));
    assert_eq!(stop.reached().await, [swap.id()]);
    assert!(!is_there(&memory, swap.id()).await);
    stop.go_on();
    assert!(took(&swapping.await.unwrap().unwrap()));
    assert!(is_there(&memory, swap.id()).await);
}

#[tokio::test(start_paused = true)]
async fn a_swap_that_stopped_after_the_store_has_been_done_and_is_not_answered() {
    let (memory, store) = open();
    let (stop, swap) = (store.stop_at(Point::AfterSwap), swap());
    let swapping = swapping(&store, std::slice::from_ref(&swap));
    assert_eq!(stop.reached().await, [swap.id()]);
    assert!(is_there(&memory, swap.id()).await);
    assert!(!swapping.is_finished());
    stop.go_on();
    assert!(took(&swapping.await.unwrap().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_call_stays_stopped_however_much_time_passes() {
    let (_memory, store) = open();
    let stop = store.stop_at(Point::AfterSwap);
    let swapping = swapping(&store, &[swap()]);
    stop.reached().await;
    tokio::time::advance(Duration::from_hours(1)).await;
    tokio::task::yield_now().await;
    assert!(!swapping.is_finished());
    stop.go_on();
    assert!(swapping.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_unknown_and_was_done_only_at_a_point_after_it() {
    for (point, done) in [(Point::BeforeSwap, false), (Point::AfterSwap, true)] {
        let (memory, store) = open();
        let (stop, swap) = (store.stop_at(point), swap());
        let swapping = swapping(&store, std::slice::from_ref(&swap));
        stop.reached().await;
        stop.lose_reply();
        assert_eq!(swapping.await.unwrap().unwrap_err().kind(), ErrorKind::Unknown, "{point:?}");
        assert_eq!(is_there(&memory, swap.id()).await, done, "{point:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_is_unavailable_and_never_reaches_the_store() {
    let (memory, store) = open();
    let (stop, swap) = (store.stop_at(Point::BeforeSwap), swap());
    let swapping = swapping(&store, std::slice::from_ref(&swap));
    stop.reached().await;
    stop.refuse();
    assert_eq!(swapping.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(!is_there(&memory, swap.id()).await);
}

#[tokio::test]
async fn what_becomes_of_a_call_can_be_said_before_it_is_made() {
    let (memory, store) = open();
    store.stop_at(Point::AfterSwap).lose_reply();
    let first = swap();
    let error = store.swap([first.clone()].into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    assert!(is_there(&memory, first.id()).await);
    assert!(took(&store.swap([swap()].into()).await.unwrap().value), "one stop takes one call");
}

#[tokio::test]
async fn a_call_that_is_not_stopped_has_the_reply_of_the_store_itself() {
    let (memory, store) = open();
    let other = swap();
    let _other_point = store.stop_at(Point::BeforeLoad);
    let _other_record = store.stop_at(Point::BeforeSwap.about(other.id()));
    let _later_call = store.stop_at(Point::AfterSwap.nth(2));
    let swap = swap();
    let mut reply = store.swap([swap.clone()].into());
    assert!(is_there(&memory, swap.id()).await, "the store is asked at once, not when the reply is polled");
    assert_eq!(format!("{reply:?}"), format!("{:?}", memory.swap([swap].into())));
    assert!(matches!(poll(&mut reply), Poll::Ready(Ok(()))));
}

#[tokio::test]
async fn a_call_that_is_stopped_is_not_ready() {
    let (_memory, store) = open();
    let stop = store.stop_at(Point::AfterSwap);
    let mut reply = store.swap([swap()].into());
    assert!(poll(&mut reply).is_pending());
    assert!(stop.is_reached());
    stop.go_on();
    assert!(matches!(poll(&mut reply), Poll::Ready(Ok(()))));
}

#[tokio::test]
async fn only_the_call_with_the_number_is_stopped() {
    let (_memory, store) = open();
    let stop = store.stop_at(Point::BeforeSwap.nth(3));
    for number in 1..=4 {
        let mut reply = store.swap([swap()].into());
        assert_eq!(poll(&mut reply).is_pending(), number == 3, "call {number}");
    }
    assert!(stop.is_reached());
}

#[tokio::test]
async fn only_a_call_about_the_record_is_stopped() {
    let (_memory, store) = open();
    let swaps = [swap(), swap(), swap()];
    let [_, second, third] = &swaps;
    let stop = store.stop_at(Point::BeforeSwap.about(third.id()));
    assert!(poll(&mut store.swap([second.clone()].into())).is_ready());
    assert!(poll(&mut store.swap(swaps.to_vec().into())).is_pending());
    assert_eq!(stop.reached().await, swaps.each_ref().map(Swap::id));
    assert!(poll(&mut store.swap([third.clone()].into())).is_ready(), "one stop takes one call");
}

#[tokio::test]
async fn two_stops_at_one_point_take_one_call_each_in_their_order() {
    let (_memory, store) = open();
    let (first, second) = (store.stop_at(Point::BeforeSwap), store.stop_at(Point::BeforeSwap));
    let (one, two) = (swap(), swap());
    let mut replies = [store.swap([one.clone()].into()), store.swap([two.clone()].into())];
    assert!(replies.iter_mut().all(|reply| poll(reply).is_pending()));
    assert_eq!((first.reached().await, second.reached().await), (vec![one.id()], vec![two.id()]));
    second.go_on();
    assert_eq!(replies.each_mut().map(|reply| poll(reply).is_ready()), [false, true]);
    first.go_on();
    assert!(poll(&mut replies[0]).is_ready());
}

#[tokio::test]
async fn one_call_can_stop_before_the_store_and_after_it() {
    let (memory, store) = open();
    let (before, after) = (store.stop_at(Point::BeforeSwap), store.stop_at(Point::AfterSwap));
    let swap = swap();
    let mut reply = store.swap([swap.clone()].into());
    assert!(poll(&mut reply).is_pending());
    assert_eq!((before.is_reached(), after.is_reached()), (true, false));
    before.go_on();
    assert!(poll(&mut reply).is_pending());
    assert!(after.is_reached() && is_there(&memory, swap.id()).await);
    after.go_on();
    assert!(matches!(poll(&mut reply), Poll::Ready(Ok(()))));
}

#[tokio::test]
async fn a_call_that_was_refused_leaves_the_stop_after_it_to_the_next() {
    let (_memory, store) = open();
    store.stop_at(Point::BeforeSwap).refuse();
    let after = store.stop_at(Point::AfterSwap);
    assert!(store.swap([swap()].into()).await.is_err());
    assert!(!after.is_reached());
    assert!(poll(&mut store.swap([swap()].into())).is_pending());
    assert!(after.is_reached());
}

#[tokio::test]
async fn a_stop_that_is_dropped_stops_nothing_and_leaves_the_call_to_the_next_stop() {
    let (_memory, store) = open();
    let mut stopped = {
        let stop = store.stop_at(Point::BeforeSwap);
        let mut reply = store.swap([swap()].into());
        assert!(poll(&mut reply).is_pending() && stop.is_reached());
        reply
    };
    assert!(poll(&mut stopped).is_ready(), "the call goes on when its stop is dropped");
    drop(store.stop_at(Point::BeforeSwap));
    let next = store.stop_at(Point::BeforeSwap);
    assert!(poll(&mut store.swap([swap()].into())).is_pending());
    assert!(next.is_reached());
}

#[tokio::test]
async fn every_method_stops_before_and_after_the_store() {
    let (_memory, store) = open();
    let scan = || semel::store::Scan { filter: semel::store::Filter::default(), after: None, limit: 1 };
    for point in [Point::BeforeLoad, Point::AfterLoad] {
        let stop = store.stop_at(point);
        assert!(poll(&mut store.load(Vec::new())).is_pending() && stop.is_reached(), "{point:?}");
    }
    for point in [Point::BeforeSweep, Point::AfterSweep] {
        let stop = store.stop_at(point);
        assert!(poll(&mut store.sweep(1)).is_pending() && stop.is_reached(), "{point:?}");
    }
    for point in [Point::BeforeScan, Point::AfterScan] {
        let stop = store.stop_at(point);
        assert!(poll(&mut store.scan(scan())).is_pending() && stop.is_reached(), "{point:?}");
    }
    let counts = [Call::Swap, Call::Load, Call::Sweep, Call::Scan].map(|call| store.count(call));
    assert_eq!(counts, [0, 2, 2, 2]);
}

#[tokio::test]
async fn calls_are_counted_with_the_ids_of_their_batches() {
    let (_memory, store) = open();
    let (one, two) = (swap(), swap());
    let ids = vec![two.id(), one.id()];
    drop(store.swap([two, one].into_iter().collect()).await.unwrap());
    drop(store.load(ids[..1].to_vec()).await.unwrap());
    assert_eq!((store.count(Call::Swap), store.count(Call::Load), store.count(Call::Sweep)), (1, 1, 0));
    assert_eq!(store.batches(Call::Swap), std::slice::from_ref(&ids));
    let calls: Vec<_> = store.calls().into_iter().map(|made| (made.call, made.ids)).collect();
    assert_eq!(calls, [(Call::Swap, ids.clone()), (Call::Load, ids[..1].to_vec())]);
    store.forget_calls();
    assert!(store.calls().is_empty());
}

/// Two engines claim one key; the swap of the first is stopped at `point` until the second has been answered.
async fn two_claims(point: Point) -> (Decision, Decision) {
    let (memory, store) = open();
    let slow = Semel::builder(store.clone()).no_sweep().build().unwrap();
    let fast = Semel::builder_shared(memory as Arc<dyn Store>).no_sweep().build().unwrap();
    let key = sample::key("two-claims").unwrap();
    let stop = store.stop_at(point.about(key.id()));
    let claim = Claim::new(&key);
    let claiming = tokio::spawn(async move { slow.claim(claim).await });
    stop.reached().await;
    let second = fast.claim(Claim::new(&key)).await.unwrap();
    stop.go_on();
    (claiming.await.unwrap().unwrap(), second)
}

#[tokio::test(start_paused = true)]
async fn the_point_decides_which_of_two_claims_is_granted() {
    let (first, second) = two_claims(Point::BeforeSwap).await;
    assert!(matches!((&first, &second), (Decision::Busy { .. }, Decision::Run(_))), "{first:?}, {second:?}");
    let (first, second) = two_claims(Point::AfterSwap).await;
    assert!(matches!((&first, &second), (Decision::Run(_), Decision::Busy { .. })), "{first:?}, {second:?}");
}
