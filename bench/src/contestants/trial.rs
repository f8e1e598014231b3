//! What every contestant must do to be one.

use tokio::runtime::Runtime;

use super::contestant::{Claimed, Contestant};

/// Tries a contestant that knows neither key 9,007 nor key 9,008; its name, and how many bytes its outcomes have.
pub(crate) fn refuses_a_second_claim(
    (name, bytes): (&str, usize),
    runtime: &Runtime,
    contestant: &impl Contestant,
) {
    runtime.block_on(async {
        let Claimed::Run(run) = contestant.claim(9_007).await.unwrap() else {
            panic!("{name}: nobody claimed it")
        };
        // Whoever comes while it runs is refused, which is an error to a contestant.
        assert!(contestant.claim(9_007).await.is_err(), "{name}");
        contestant.complete(run).await.unwrap();
        for _ in 0..2 {
            assert!(
                matches!(contestant.claim(9_007).await, Ok(Claimed::Replay(found)) if found == bytes),
                "{name}"
            );
        }
        assert!(contestant.cycle(9_007).await.is_err(), "{name}");
        assert!(contestant.replay(9_008).await.is_err(), "{name}");
    });
}
