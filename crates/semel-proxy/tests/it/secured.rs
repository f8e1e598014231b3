//! TLS on either side.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use semel_listen::ServerTls;
use semel_listen::tls::provider;
use tokio_rustls::TlsAcceptor;

use crate::certificate::{certificate, connect};
use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;

/// A service behind TLS that says what it was asked.
async fn behind_tls(tls: &ServerTls) -> Service {
    let chain = vec![CertificateDer::from_pem_file(&tls.certificate).expect("is a certificate")];
    let key = PrivateKeyDer::from_pem_file(&tls.key).expect("is a key");
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("are known")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("go together");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Service::scripted(move |line| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(line.0).await else { return };
            let mut client = Client::over(stream);
            while let Some(first) = client.line().await {
                while client.line().await.is_some_and(|line| !line.is_empty()) {}
                client
                    .write(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{first}", first.len()))
                    .await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn clients_over_tls_are_served_in_the_version_they_agreed_on() {
    let (_folder, tls) = certificate();
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.listener.tls = Some(tls.clone());
    let proxy = start(settings).await;
    let stream = connect(proxy.listening(), &tls, b"http/1.1").await.expect("is secured");
    let answer = Client::over(stream).ask("GET /tls HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(answer.text().contains("x-forwarded-proto: https\n"), "{}", answer.text());

    let stream = connect(proxy.listening(), &tls, b"h2").await.expect("is secured");
    let (mut sender, connection) = hyper::client::conn::http2::handshake(
        hyper_util::rt::TokioExecutor::new(),
        hyper_util::rt::TokioIo::new(stream),
    )
    .await
    .expect("speaks HTTP/2");
    tokio::spawn(connection);
    let request = http::Request::get("https://a/two").body(String::new()).expect("is a request");
    assert_eq!(sender.send_request(request).await.expect("is answered").status(), 200);
}

#[tokio::test]
async fn a_client_without_tls_gets_nothing_from_a_proxy_that_has_it() {
    let (_folder, tls) = certificate();
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.listener.tls = Some(tls);
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(client.answer(true).await, None);
}

#[tokio::test]
async fn an_upstream_over_tls_is_trusted_by_its_authority_and_by_no_other() {
    let (_folder, tls) = certificate();
    let service = behind_tls(&tls).await;
    let mut settings = settings(service.address);
    settings.upstream = format!("https://localhost:{}", service.address.port()).parse().expect("is a URL");
    let distrusting = start(settings.clone()).await;
    let answer =
        Client::connect(distrusting.listening()).await.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer.status, 502, "{}", answer.text());
    settings.upstream_authorities = Some(tls.certificate.clone());
    let trusting = start(settings).await;
    let mut client = Client::connect(trusting.listening()).await;
    for path in ["/one", "/two"] {
        let answer = client.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        assert_eq!(answer.text(), format!("GET {path} HTTP/1.1"));
    }
    assert_eq!(service.connections(), 2, "one that was refused, and one for both requests");
}

#[tokio::test]
async fn files_that_hold_no_certificate_are_named() {
    let (folder, tls) = certificate();
    let service = Service::mirror().await;
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "nothing").expect("is written");
    let mut settings = settings(service.address);
    settings.listener.tls = Some(ServerTls { certificate: empty.clone(), ..tls });
    let error = semel_proxy::Proxy::start(settings).await.err().expect("is refused").to_string();
    assert!(error.contains("empty.pem"), "{error}");
}

#[tokio::test]
async fn a_reload_shows_new_clients_the_new_certificate_and_keeps_the_old_one_if_that_is_broken() {
    let (_folder, tls) = certificate();
    let (_other, renewed) = certificate();
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.listener.tls = Some(tls.clone());
    let proxy = start(settings.clone()).await;
    let agreed = connect(proxy.listening(), &tls, b"http/1.1").await.expect("is secured");
    // The files are what they were called before; what they hold is new.
    let before = connect(proxy.listening(), &renewed, b"http/1.1").await;
    assert!(before.is_err(), "the renewed one is not shown before a reload");
    let old = std::fs::read(&tls.certificate).expect("is there");
    std::fs::copy(&renewed.certificate, &tls.certificate).expect("is written");
    let error = proxy.reload(settings.clone()).expect_err("the key is another's").to_string();
    assert!(error.contains("cert.pem"), "{error}");
    let kept = ServerTls { certificate: renewed.certificate.with_file_name("old.pem"), key: tls.key.clone() };
    std::fs::write(&kept.certificate, old).expect("is written");
    connect(proxy.listening(), &kept, b"http/1.1").await.expect("the old one is still shown");
    std::fs::copy(&renewed.key, &tls.key).expect("is written");
    proxy.reload(settings.clone()).expect("goes together now");
    connect(proxy.listening(), &renewed, b"http/1.1").await.expect("the new one is shown");
    assert!(connect(proxy.listening(), &kept, b"http/1.1").await.is_err(), "and the old one is not");
    let answer = Client::over(agreed).ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer.status, 200, "connections that there are go on");
    // Other files are taken up as well; only from TLS to plain takes a restart.
    settings.listener.tls = Some(renewed);
    assert_eq!(proxy.needs_restart(&settings), [""; 0]);
    settings.listener.tls = None;
    assert_eq!(proxy.needs_restart(&settings), ["tls"]);
}

#[tokio::test]
async fn a_reload_that_adds_or_removes_tls_leaves_what_the_upstream_hears_of_the_clients_scheme() {
    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let (_folder, tls) = certificate();
    let service = Service::mirror().await;
    let plain = settings(service.address);
    let mut secured = plain.clone();
    secured.listener.tls = Some(tls.clone());

    let proxy = start(plain.clone()).await;
    proxy.reload(secured.clone()).expect("is taken, but for TLS");
    let answer = Client::connect(proxy.listening()).await.ask(GET).await;
    assert!(answer.text().contains("x-forwarded-proto: http\n"), "{}", answer.text());

    let proxy = start(secured).await;
    proxy.reload(plain).expect("is taken, but for TLS");
    let stream = connect(proxy.listening(), &tls, b"http/1.1").await.expect("is still secured");
    let answer = Client::over(stream).ask(GET).await;
    assert!(answer.text().contains("x-forwarded-proto: https\n"), "{}", answer.text());
}

#[tokio::test]
async fn a_reload_whose_rules_are_refused_leaves_the_old_certificate() {
    let (_folder, tls) = certificate();
    let (_other, renewed) = certificate();
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.listener.tls = Some(tls.clone());
    let proxy = start(settings.clone()).await;
    settings.listener.tls = Some(renewed);
    settings.http.scope = vec![String::new()];
    assert!(proxy.reload(settings).is_err(), "a scope that no key can have is refused");
    connect(proxy.listening(), &tls, b"http/1.1").await.expect("the old one is still shown");
}
