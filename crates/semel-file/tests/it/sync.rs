//! Answers of a store that does all work inside the call.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use semel::record::Record;
use semel::store::{Answer, Reply, Store};
use semel::{RecordId, Result};

/// The answer, which must be there: an inline store waits for nothing.
pub(crate) fn ready<T: Unpin>(mut reply: Reply<T>) -> Result<Answer<T>> {
    match Pin::new(&mut reply).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("an inline store has its answer ready"),
    }
}

/// The records with these ids, each of which can be read.
pub(crate) fn loaded(store: &dyn Store, ids: Vec<RecordId>) -> Result<Answer<Vec<Option<Arc<Record>>>>> {
    let mut answer = ready(store.load(ids))?;
    let records = std::mem::take(&mut answer.value).into_iter().collect::<Result<_>>()?;
    Ok(answer.map(|_| records))
}
