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
            let asked = self.loading.len();
            let loaded = batcher.finish(|store| store.load(self.loads)).await;
            let each = self.loading.into_iter().zip(spread(loaded, asked));
            heard.extend(each.map(|(at, one)| (at, Heard::Loaded(one))));
        }
        if !self.swaps.is_empty() {
            let asked = self.swapping.len();
            let swapped = batcher.finish(|store| store.swap(self.swaps)).await;
            let each = self.swapping.into_iter().zip(spread(swapped, asked));
            heard.extend(each.map(|(at, one)| (at, Heard::Swapped(one))));
        }
        heard
    }
}

/// An answer to `asked` questions, for each of them; an error is the answer to all.
pub(super) fn spread<T, V: IntoIterator<Item = T> + AsRef<[T]>>(
    answer: Result<Answer<V>>,
    asked: usize,
) -> impl Iterator<Item = Result<Answer<T>>> {
    let (values, error) = match answer.and_then(|answer| answer.for_each_of(asked)) {
        Ok(Answer { now, value, caching }) => {
            (Some(value.into_iter().map(move |value| Answer::new(now, value).caching(caching))), None)
        }
        Err(error) => (None, Some(error)),
    };
    let errors = error.into_iter().flat_map(move |error| std::iter::repeat_n(error, asked));
    values.into_iter().flatten().map(Ok).chain(errors.map(Err))
}
