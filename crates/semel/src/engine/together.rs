//! Several asks at once: what they want of the store goes in one batch a round.

use std::sync::Arc;
use std::time::Duration;

use super::batcher::{Batcher, Rule};
use super::swap_loop::{Heard, Next, Settled, SwapLoop};
use crate::error::{Error, ErrorKind, Result};
use crate::key::RecordId;
use crate::store::{Answer, Swaps};

/// Drives all asks to their ends. Their answers come in the order of the asks.
pub(super) async fn ask_together<A, R: Rule<A>>(
    batcher: &Arc<Batcher>,
    mut asks: Vec<SwapLoop<A, R>>,
) -> Vec<Result<Settled<A>>> {
    let mut answers: Vec<Option<Result<Settled<A>>>> = asks.iter().map(|_| None).collect();
    loop {
        let round = Round::of(&mut asks, &mut answers);
        if round.is_empty() {
            break;
        }
        if !round.pause.is_zero() {
            tokio::time::sleep(round.pause).await;
        }
        for (at, heard) in round.send(batcher).await {
            if let (Some(ask), Some(answer)) = (asks.get_mut(at), answers.get_mut(at))
                && let Err(error) = ask.hear(heard)
            {
                *answer = Some(Err(error));
            }
        }
    }
    let unanswered = || Err(Error::new(ErrorKind::Unknown, "an ask was not answered; ask again"));
    answers.into_iter().map(|answer| answer.unwrap_or_else(unanswered)).collect()
}

/// What the asks want in one round, and whose each wish is.
#[derive(Default)]
struct Round {
    swaps: Swaps,
    swapping: Vec<usize>,
    loads: Vec<RecordId>,
    loading: Vec<usize>,
    pause: Duration,
}

impl Round {
    fn of<A, R: Rule<A>>(asks: &mut [SwapLoop<A, R>], answers: &mut [Option<Result<Settled<A>>>]) -> Self {
        let mut round = Self::default();
        for (at, (ask, answer)) in asks.iter_mut().zip(answers).enumerate() {
            if answer.is_some() {
                continue;
            }
            match ask.next() {
                Ok(Next::Swap(swap)) => {
                    round.swaps.push(swap);
                    round.swapping.push(at);
                }
                Ok(Next::Load(id)) => {
                    round.loads.push(id);
                    round.loading.push(at);
                }
                Ok(Next::Pause(pause)) => round.pause = round.pause.max(pause),
                Ok(Next::Answer(settled)) => *answer = Some(Ok(settled)),
                Err(error) => *answer = Some(Err(error)),
            }
        }
        round
    }

    fn is_empty(&self) -> bool {
        self.swaps.is_empty() && self.loads.is_empty() && self.pause.is_zero()
    }

    async fn send(self, batcher: &Arc<Batcher>) -> Vec<(usize, Heard)> {
        let mut heard = Vec::with_capacity(self.swapping.len().saturating_add(self.loading.len()));
        if !self.loads.is_empty() {
            let loaded = batcher.finish(|store| store.load(self.loads)).await;
            heard.extend(
                self.loading.into_iter().zip(spread(loaded)).map(|(at, one)| (at, Heard::Loaded(one))),
            );
        }
        if !self.swaps.is_empty() {
            let swapped = batcher.finish(|store| store.swap(self.swaps)).await;
            let each = self.swapping.into_iter().zip(spread(swapped));
            heard.extend(each.map(|(at, one)| (at, Heard::Swapped(one))));
        }
        heard
    }
}

/// An answer to many, for each of them.
pub(super) fn spread<T, V: IntoIterator<Item = T>>(
    answer: Result<Answer<V>>,
) -> impl Iterator<Item = Result<Answer<T>>> {
    let short = || Error::new(ErrorKind::Unknown, "the store answered fewer than it was asked; ask again");
    let (mut values, error) = match answer {
        Ok(Answer { now, value, caching }) => {
            let values = value.into_iter().map(move |value| Ok(Answer::new(now, value).caching(caching)));
            (Some(values), short())
        }
        Err(error) => (None, error),
    };
    std::iter::from_fn(move || {
        let next = values.as_mut().and_then(Iterator::next);
        Some(next.unwrap_or_else(|| Err(error.clone())))
    })
}
