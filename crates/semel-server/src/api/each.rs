//! Many asks at once, so that they ride in few swaps.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Starts all of them before any is waited for, and hands back their answers in order. What a store answers at once is
/// answered in one go, and in one place of memory; the others gather in the engine's batch meanwhile.
pub(super) async fn each<F: Future>(asks: impl ExactSizeIterator<Item = F>) -> Vec<F::Output> {
    let mut started = Vec::with_capacity(asks.len());
    let mut spare: Option<Pin<Box<F>>> = None;
    for ask in asks {
        let mut asked = match spare.take() {
            Some(mut place) => {
                place.set(ask);
                place
            }
            None => Box::pin(ask),
        };
        match poll_fn(|context| Poll::Ready(asked.as_mut().poll(context))).await {
            Poll::Ready(answer) => {
                started.push(Started::Answered(answer));
                spare = Some(asked);
            }
            Poll::Pending => started.push(Started::Going(asked)),
        }
    }
    drop(spare);
    let mut answers = Vec::with_capacity(started.len());
    for ask in started {
        answers.push(match ask {
            Started::Answered(answer) => answer,
            Started::Going(asked) => asked.await,
        });
    }
    answers
}

enum Started<F: Future> {
    Answered(F::Output),
    Going(Pin<Box<F>>),
}
