//! Every oddity of framing that an upstream can send, with and without a key, to clients of HTTP/1.1 and HTTP/2.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use semel_proxy::UpstreamVersion;
use test_http::hostile::{Case, HostileUpstream, Tried, Version, cases, faults};

use crate::proxied::{settings, start};

const AT_ONCE: usize = 64;

/// What is wrong with what clients see of a case.
async fn tried(case: Case) -> Vec<String> {
    let upstream = HostileUpstream::start(case.clone()).await;
    let mut settings = settings(upstream.address());
    settings.upstream_version = match case.version {
        Version::Http1 => UpstreamVersion::Http1,
        Version::Http2 => UpstreamVersion::Http2,
    };
    settings.upstream_limits.response = Duration::from_secs(2);
    settings.listener.timeouts.body_idle = Duration::from_secs(2);
    let proxy = start(settings).await;
    let mut found = Vec::new();
    for client in [Version::Http1, Version::Http2] {
        let key = (!case.is_head).then(|| format!("key-{client:?}"));
        for key in [None, key] {
            found.extend(faults(&upstream, proxy.listening(), &Tried { client, key }).await);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_of_an_upstream_confuses_a_client_or_a_key() {
    let cases = cases();
    let count = cases.len();
    let wrong: Vec<_> = stream::iter(cases.into_iter().map(|case| tokio::spawn(tried(case))))
        .buffer_unordered(AT_ONCE)
        .flat_map(|found| stream::iter(found.expect("ends")))
        .collect()
        .await;
    assert!(wrong.is_empty(), "{} faults in {count} cases:\n{}", wrong.len(), wrong.join("\n"));
}
