//! What a reload takes up, what it leaves, and what it says needs a restart.

use std::time::Duration;

use http::StatusCode;
use semel_http::{Code, KeyPresence, Principal, Profile};
use semel_ops::store_url::Address;
use semel_proxy::{AccessLog, ProxySettings, UnderscoresInHeaders, UpstreamVersion};

use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.9\r\nX_Under: score\r\n\r\n";

type Change = fn(&mut ProxySettings);

#[tokio::test]
async fn every_setting_that_needs_a_restart_is_named_and_no_other_is() {
    let service = Service::mirror().await;
    let now = settings(service.address);
    let proxy = start(now.clone()).await;
    let changes: [(&str, Change); 24] = [
        ("listen", |of| of.listener.listen.set_port(1)),
        ("admin", |of| of.admin = Some("127.0.0.1:1".parse().expect("is an address"))),
        ("tokens", |of| of.admin_tokens_file = Some("tokens.toml".into())),
        ("audit", |of| of.audit = Some("audit.log".into())),
        ("upstream", |of| of.upstream = "http://127.0.0.1:1".parse().expect("is a URL")),
        ("the upstream's version", |of| of.upstream_version = UpstreamVersion::Http2),
        ("the upstream's authorities", |of| of.upstream_authorities = Some("ca.pem".into())),
        ("store", |of| of.store = Address::File("elsewhere".into())),
        ("the access log", |of| of.access_log = AccessLog::Json),
        ("bounds", |of| of.listener.limits.connections_max += 1),
        ("bounds", |of| of.listener.limits.streams_max += 1),
        ("bounds", |of| of.upstream_limits.idle_max += 1),
        ("bounds", |of| of.http.held_bytes_max += 1),
        ("bounds", |of| of.http.caller_held_bytes_max = Some(1)),
        ("timeouts", |of| of.listener.timeouts.head += Duration::from_secs(1)),
        ("timeouts", |of| of.listener.timeouts.drain += Duration::from_secs(1)),
        ("timeouts", |of| of.upstream_limits.connect += Duration::from_secs(1)),
        ("timeouts", |of| of.upstream_limits.response += Duration::from_secs(1)),
        ("timeouts", |of| of.http.store_timeout += Duration::from_secs(1)),
        ("", |of| of.principal = Principal::header("x-api-key")),
        ("", |of| of.http.profile = Profile::stripe()),
        ("", |of| of.http.scope = vec!["another".to_owned()]),
        ("", |of| of.trusted_proxies = vec!["10.0.0.0/8".parse().expect("is a network")]),
        ("", |of| of.underscores_in_headers = UnderscoresInHeaders::Pass),
    ];
    assert_eq!(proxy.needs_restart(&now), [""; 0]);
    for (place, (word, change)) in changes.into_iter().enumerate() {
        let mut next = now.clone();
        change(&mut next);
        let expected: Vec<_> = Some(word).filter(|word| !word.is_empty()).into_iter().collect();
        assert_eq!(proxy.needs_restart(&next), expected, "change {place}");
    }
}

#[tokio::test]
async fn a_reload_takes_up_what_the_upstream_is_told_of_clients() {
    let service = Service::mirror().await;
    let first = settings(service.address);
    let proxy = start(first.clone()).await;
    let mut client = Client::connect(proxy.listening()).await;
    let before = client.ask(GET).await;
    assert!(before.text().contains("x-forwarded-for: 127.0.0.1\n"), "{}", before.text());
    assert!(!before.text().contains("x_under"), "{}", before.text());
    let mut next = first.clone();
    next.trusted_proxies = vec!["127.0.0.0/8".parse().expect("is a network")];
    next.underscores_in_headers = UnderscoresInHeaders::Pass;
    proxy.reload(next).expect("is taken");
    let after = client.ask(GET).await;
    assert!(after.text().contains("x-forwarded-for: 192.0.2.9, 127.0.0.1\n"), "{}", after.text());
    assert!(after.text().contains("x_under: score\n"), "{}", after.text());
    proxy.reload(first).expect("is taken");
    assert_eq!(client.ask(GET).await.text(), before.text(), "and back again");
}

#[tokio::test]
async fn a_reload_never_moves_the_upstream_under_its_clients() {
    let (service, other) = (Service::mirror().await, Service::scripted(|_| async {}).await);
    let first = settings(service.address);
    let proxy = start(first.clone()).await;
    let mut next = settings(other.address);
    next.upstream_version = UpstreamVersion::Http2;
    next.http.profile.rules.key = KeyPresence::Required;
    assert_eq!(proxy.needs_restart(&next), ["upstream", "the upstream's version"]);
    proxy.reload(next).expect("is taken, but for the upstream");
    let mut client = Client::connect(proxy.listening()).await;
    assert!(client.ask(GET).await.text().contains(" HTTP/1.1\n"));
    let keyless = "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: t\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(client.ask(keyless).await.status, 400, "what can be taken up is");
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn the_statuses_of_a_profile_are_those_of_the_proxys_own_refusals_also_after_a_reload() {
    let gone = Service::mirror().await;
    let address = gone.address;
    drop(gone);
    let mut first = settings(address);
    let proxy = start(first.clone()).await;
    assert_eq!(Client::connect(proxy.listening()).await.ask(GET).await.status, 502);
    let statuses = first.http.profile.statuses.clone();
    first.http.profile.statuses = statuses.with(Code::UpstreamUnreachable, StatusCode::SERVICE_UNAVAILABLE);
    proxy.reload(first).expect("is taken");
    assert_eq!(Client::connect(proxy.listening()).await.ask(GET).await.status, 503);
}

#[tokio::test]
async fn a_reload_keeps_what_was_counted_of_its_callers() {
    let service = Service::mirror().await;
    let mut first = settings(service.address);
    first.http.quotas = Some(semel_http::Quotas { records: Some(1), ..semel_http::Quotas::default() });
    let proxy = start(first.clone()).await;
    let keyed = |key: &str| {
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: t\r\nIdempotency-Key: {key}\r\nContent-Length: 0\r\n\r\n"
        )
    };
    let mut client = Client::connect(proxy.listening()).await;
    assert_eq!(client.ask(&keyed("a")).await.status, 200);
    proxy.reload(first).expect("is taken");
    assert_eq!(client.ask(&keyed("b")).await.status, 429);
    assert_eq!(client.ask(&keyed("a")).await.status, 200, "what is there may be asked for");
}
