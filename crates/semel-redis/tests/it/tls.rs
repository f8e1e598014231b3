//! Encrypted connections: to servers whose certificate is trusted, and to no others.

use std::net::TcpListener;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use semel_redis::RedisStore;
use test_services::Redis;

use crate::tries::{LONG, load, put};

/// An authority, and a certificate that it signed for 127.0.0.1, as files in a folder.
fn certificates(folder: &Path) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let signed_by_itself = authority.self_signed(&authority_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    let server = server.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
    std::fs::write(folder.join("ca.pem"), signed_by_itself.pem()).unwrap();
    std::fs::write(folder.join("server.pem"), server.pem()).unwrap();
    std::fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
}

/// A server that takes encrypted connections on a second port.
fn start(folder: &Path) -> (Redis, u16) {
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    // The port was free a moment ago; another may take it first, and then the server does not start.
    for _ in 0..5 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let started = Redis::start_with(&[
            ("tls-port", &port.to_string()),
            ("tls-cert-file", &file("server.pem")),
            ("tls-key-file", &file("server.key")),
            ("tls-ca-cert-file", &file("ca.pem")),
            ("tls-auth-clients", "optional"),
        ]);
        if let Ok(server) = started {
            return (server, port);
        }
    }
    panic!("no port stayed free, or this redis-server knows no TLS");
}

#[tokio::test]
async fn a_server_whose_certificate_is_signed_by_a_trusted_authority_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let (_server, port) = start(folder.path());
    let ca = folder.path().join("ca.pem");
    let store = RedisStore::connect(&format!("rediss://127.0.0.1:{port}?ca={}", ca.display())).await.unwrap();
    let record = put(&store, LONG).await;
    assert_eq!(load(&store, &record.key).await.unwrap().as_ref(), Some(&record));
    let built =
        RedisStore::builder(&format!("rediss://localhost:{port}")).ca_file(&ca).connect().await.unwrap();
    assert_eq!(load(&built, &record.key).await.unwrap().as_ref(), Some(&record));
}

#[tokio::test]
async fn a_server_whose_certificate_is_signed_by_another_authority_is_refused() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    certificates(ours.path());
    certificates(theirs.path());
    let (_server, port) = start(theirs.path());
    let ca = ours.path().join("ca.pem");
    let stranger = RedisStore::connect(&format!("rediss://127.0.0.1:{port}?ca={}", ca.display())).await;
    assert!(stranger.is_err());
    let by_the_system = RedisStore::connect(&format!("rediss://127.0.0.1:{port}")).await;
    assert!(by_the_system.is_err());
}

#[tokio::test]
async fn a_certificate_that_cannot_be_read_is_named() {
    let error = RedisStore::connect("rediss://127.0.0.1:1?ca=/no/such/file.pem").await.unwrap_err();
    assert!(error.to_string().contains("/no/such/file.pem"), "{error}");
}
