//! What the tests that `conformance!` makes run on.

use std::future::Future;

use crate::conformance::Broken;

/// Runs one check on a runtime with two threads, and fails the test that calls it if the promise is broken.
///
/// # Panics
///
/// If the promise is broken.
#[expect(clippy::panic, reason = "this is how a test fails")]
pub fn keeps(check: impl Future<Output = Result<(), Broken>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let kept = match runtime {
        Ok(runtime) => runtime.block_on(check),
        Err(error) => Err(Broken::new("a test has a runtime", error.to_string())),
    };
    if let Err(broken) = kept {
        panic!("{broken}");
    }
}
