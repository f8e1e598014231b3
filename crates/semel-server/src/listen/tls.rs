//! The certificate that clients are shown, from PEM files to what rustls wants.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use semel::{Error, ErrorKind, Result};

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The chain, leaf first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What clients are shown.
pub(crate) fn to_clients(tls: &ServerTls) -> Result<Arc<ServerConfig>> {
    let chain = certificates(&tls.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| refused(&tls.key, "holds no private key in PEM that can be read", error))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| refused(&tls.certificate, "does not go with its key", error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// What a file holds, one certificate at least.
pub(crate) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = || CertificateDer::pem_file_iter(file)?.collect::<std::result::Result<Vec<_>, _>>();
    let chain =
        read().map_err(|error| refused(file, "holds no certificates in PEM that can be read", error))?;
    if chain.is_empty() {
        return Err(refused(file, "holds no certificate", "it has no `-----BEGIN CERTIFICATE-----`"));
    }
    Ok(chain)
}

pub(crate) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(crate) fn refused(file: &Path, what: &str, why: impl Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("{} {what}: {why}", file.display()))
}

pub(crate) fn unusable(error: &rustls::Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("no version of TLS can be used: {error}"))
}
