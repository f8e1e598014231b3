//! The list of all cases, and the control that must be caught.

use super::case::Case;
use super::{http1, http2};

/// Every case.
pub fn cases() -> Vec<Case> {
    [http1::cases(), http2::cases()].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::hostile::{HostileUpstream, Relay, Tried, Version, faults};

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
