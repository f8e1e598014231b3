//! A certificate that vouches for itself, and a client that trusts it.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use semel_listen::ServerTls;
use semel_listen::tls::provider;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A certificate for `localhost` that vouches for itself.
pub(crate) fn certificate() -> (TempDir, ServerTls) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("is made");
    let folder = tempfile::tempdir().expect("a folder for a test");
    let files = ServerTls { certificate: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    std::fs::write(&files.certificate, cert.pem()).expect("is written");
    std::fs::write(&files.key, signing_key.serialize_pem()).expect("is written");
    (folder, files)
}

/// A connection that trusts this certificate alone, and offers one protocol.
pub(crate) async fn connect(
    address: SocketAddr,
    tls: &ServerTls,
    protocol: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&tls.certificate).expect("is a certificate")).expect("is taken");
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("are known")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").expect("is a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}
