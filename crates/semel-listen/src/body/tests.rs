//! The time that a body may take, as a whole and between its parts.

use std::future::poll_fn;

use tokio::time::{advance, sleep};

use super::*;

const SPAN: Duration = Duration::from_secs(10);

/// Waits until the idle timer says that nothing came, and returns how long that took.
async fn given_up_after(idle: &mut Idle) -> Duration {
    let started_at = Instant::now();
    let given_up = poll_fn(|cx| idle.bounded(Poll::<()>::Pending, cx)).await;
    assert_eq!(given_up, Err(idle.span));
    started_at.elapsed()
}

/// Something comes after a wait.
async fn comes_after(idle: &mut Idle, span: Duration) {
    let mut waiting = Box::pin(sleep(span));
    let came = poll_fn(|cx| {
        let polled = waiting.as_mut().poll(cx);
        idle.bounded(polled, cx)
    });
    assert_eq!(came.await, Ok(()), "it came in time");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_given_up_before_the_whole_span_and_then_it_is() {
    assert_eq!(given_up_after(&mut Idle::new(SPAN)).await, SPAN);
}

#[tokio::test(start_paused = true)]
async fn every_part_that_comes_begins_the_span_anew() {
    let mut idle = Idle::new(SPAN);
    for _ in 0..5 {
        comes_after(&mut idle, SPAN * 9 / 10).await;
    }
    assert_eq!(given_up_after(&mut idle).await, SPAN, "the last part began it, too");
}

#[tokio::test(start_paused = true)]
async fn the_time_between_two_waits_does_not_count() {
    let mut idle = Idle::new(SPAN);
    comes_after(&mut idle, SPAN / 2).await;
    // The reader does something else: it is not the other side that is slow.
    advance(SPAN * 3).await;
    assert_eq!(given_up_after(&mut idle).await, SPAN);
}

#[tokio::test(start_paused = true)]
async fn a_span_for_the_whole_is_not_begun_anew_by_its_parts() {
    let mut whole = Idle::new(SPAN);
    let started_at = Instant::now();
    for _ in 0..3 {
        let waited = poll_fn(|cx| Poll::Ready(whole.poll_waited(cx))).await;
        assert!(waited.is_pending());
        advance(SPAN / 4).await;
    }
    poll_fn(|cx| whole.poll_waited(cx)).await;
    assert_eq!(started_at.elapsed(), SPAN);
}
