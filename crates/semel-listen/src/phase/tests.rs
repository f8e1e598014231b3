//! The phases of a process follow each other, and each wait ends with its phase.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

fn is_over_now(future: impl Future) -> bool {
    matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
}

#[test]
fn draining_takes_nothing_new_and_cuts_nothing_off() {
    let (process, mut phase) = watch::channel(Phase::Serving);
    assert!(
        !is_over_now(reached(&mut phase, Phase::Draining)) && !is_over_now(reached(&mut phase, Phase::Over))
    );
    process.send_replace(Phase::Draining);
    assert!(
        is_over_now(reached(&mut phase, Phase::Draining)) && !is_over_now(reached(&mut phase, Phase::Over))
    );
    process.send_replace(Phase::Over);
    assert!(
        is_over_now(reached(&mut phase, Phase::Draining)) && is_over_now(reached(&mut phase, Phase::Over))
    );
}

#[test]
fn a_process_that_is_gone_is_over() {
    let (process, phase) = watch::channel(Phase::Serving);
    drop(process);
    for waits in [0, 1, 2] {
        let mut phase = phase.clone();
        assert!(match waits {
            0 => is_over_now(reached(&mut phase, Phase::Draining)),
            1 => is_over_now(reached(&mut phase, Phase::Over)),
            _ => is_over_now(async { assert_eq!(next(&mut phase).await, Phase::Over) }),
        });
    }
}

#[tokio::test]
async fn each_phase_is_the_next_one_once() {
    let (process, mut phase) = watch::channel(Phase::Serving);
    process.send_replace(Phase::Draining);
    assert_eq!(next(&mut phase).await, Phase::Draining);
    assert!(!is_over_now(next(&mut phase)), "it was heard of already");
    process.send_replace(Phase::Over);
    assert_eq!(next(&mut phase).await, Phase::Over);
}
