//! The shortest way from the machine to a store: drives a swap loop, one call at a time.

use semel::clock::Timestamp;
use semel::machine::Ruling;
use semel::record::Record;
use semel::store::Store;
use semel::swap_loop::{Guess, Heard, Next, Settled, SwapLoop};
use semel::{Key, Result};

/// Rules on what the store holds and takes the ruling there, until no other caller came between. A lost reply is the end.
pub async fn drive<A>(
    store: &dyn Store,
    key: &Key,
    rule: impl FnMut(Option<&Record>, Timestamp) -> Ruling<A>,
) -> Result<Settled<A>> {
    let mut swap_loop = SwapLoop::new(key.clone(), Guess::Unknown, rule).never_twice();
    loop {
        match swap_loop.next()? {
            Next::Load(id) => swap_loop.hear(Heard::loaded(store.load(vec![id]).await))?,
            Next::Swap(swap) => swap_loop.hear(Heard::swapped(store.swap([swap].into()).await))?,
            Next::Pause(pause) => tokio::time::sleep(pause).await,
            Next::Answer(settled) => return Ok(settled),
        }
    }
}
