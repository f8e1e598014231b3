//! Answers of a store that does all work inside the call.

use std::task::{Context, Poll, Waker};

use semel::Result;
use semel::store::{Answer, Reply};

/// The answer, which must be there: an inline store waits for nothing.
pub(crate) fn ready<T>(mut reply: Reply<T>) -> Result<Answer<T>> {
    match reply.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("an inline store has its answer ready"),
    }
}
