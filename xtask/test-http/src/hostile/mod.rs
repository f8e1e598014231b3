//! A hostile upstream: every oddity of framing (RFC 9112, RFC 9113) that a service can send to the proxy before it, and what may
//! become of it.
//!
//! - [`case`]: an answer, and what it means. [`http1`], [`http2`]: all of them.
//! - [`upstream`]: sends one of them, once, and good answers otherwise. [`judge`]: what clients saw, and whether that is right.
//! - [`relay`]: the control, which passes on the lengths that it found.

mod case;
mod http1;
mod http2;
mod judge;
mod relay;
mod upstream;

pub use case::{Case, Means, Version};
pub use judge::{Tried, faults};
pub use relay::Relay;
pub use upstream::HostileUpstream;

/// Every case.
pub fn cases() -> Vec<Case> {
    [http1::cases(), http2::cases()].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn there_are_hundreds_and_no_two_have_the_same_name() {
        let cases = cases();
        let names: HashSet<_> = cases.iter().map(|case| &case.name).collect();
        assert!(names.len() == cases.len() && cases.len() > 250, "{} of {}", names.len(), cases.len());
    }

    #[tokio::test]
    async fn a_relay_that_passes_on_the_lengths_it_found_is_caught() {
        let mut caught = Vec::new();
        for case in http1::cases()
            .into_iter()
            .filter(|case| case.name.contains("length and chunks: \"Content-Length: 7\\r"))
        {
            let upstream = HostileUpstream::start(case.clone()).await;
            let relay = Relay::start(upstream.address()).await;
            let tried = Tried { client: Version::Http1, key: None };
            caught.extend(faults(&upstream, relay.address, &tried).await);
        }
        assert!(caught.len() >= 2, "{caught:?}");
    }
}
