//! Changes what a store holds, as somebody with access to it could.

use semel::Outcome;
use semel::record::{Draft, Keep, Record, State};
use semel::store::{Scan, Swap, SwapReply};

use super::shelf::Shelf;

/// Puts other bytes of the same length into the only outcome that there is.
pub(crate) async fn tamper(shelf: &Shelf, from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let store = shelf.opening().await;
    let page = store.scan(Scan { limit: 2, ..Scan::default() }).await.expect("is up").value;
    let [record] = <[_; 1]>::try_from(page.records).expect("there is one record");
    let (mut changed, expected) = (Record::clone(&record), Some(record.version));
    let State::Done(done) = &mut changed.state else { panic!("{record:?} is not done") };
    let mut bytes = done.outcome.bytes().to_vec();
    let at = bytes.windows(from.len()).position(|window| window == from).expect("the bytes are there");
    bytes[at..at + to.len()].copy_from_slice(to);
    done.outcome = Outcome::new(done.outcome.kind().clone(), bytes);
    let swap = Swap { expected, next: Draft::from_unstamped(changed), keep: Keep::Forever };
    let replies = store.swap([swap].into()).await.expect("is up").value;
    assert!(matches!(replies[..], [SwapReply::Swapped(_)]), "{replies:?}");
}
