//! The certificate that clients are shown, from PEM files to what rustls wants.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use semel::{Error, ErrorKind, Result};
use semel_config::Table;
use semel_config::render::{Lines, quoted};
use semel_config::value::file;
use tokio_rustls::TlsAcceptor;

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The chain, leaf first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl ServerTls {
    /// `[tls]` of a configuration file; `None` if it is not there, or something is wrong with it.
    pub fn read(root: &mut Table<'_>) -> Option<Self> {
        let is_there = root.has("tls");
        let mut table = root.table("tls");
        for name in ["certificate", "key"].into_iter().filter(|_| is_there) {
            if !table.has(name) {
                table.wrong(name, "is missing: TLS needs a certificate and its key, each a PEM file");
            }
        }
        let (certificate, key) = (table.read("certificate", file), table.read("key", file));
        table.finish();
        Some(Self { certificate: certificate?, key: key? })
    }

    /// The names and values of that table.
    pub fn lines(&self) -> Lines {
        vec![("certificate", quoted(self.certificate.display())), ("key", quoted(self.key.display()))]
    }
}

/// The certificate that new connections are shown. A clone is the same one.
#[derive(Clone)]
pub struct Certificate(Arc<RwLock<TlsAcceptor>>);

impl Certificate {
    pub(crate) fn read(tls: &ServerTls) -> Result<Self> {
        Ok(Self(Arc::new(RwLock::new(to_clients(tls)?.into()))))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads these files, without showing them to anybody yet: what is wrong with them is known before anything changes.
    pub fn prepare(&self, tls: &ServerTls) -> Result<Prepared> {
        Ok(Prepared { certificate: self.clone(), next: to_clients(tls)? })
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate")
    }
}

/// A certificate that was read and is not yet in use.
#[must_use = "nobody is shown it before it is put in place"]
pub struct Prepared {
    certificate: Certificate,
    next: Arc<ServerConfig>,
}

impl Prepared {
    /// Connections from now on are shown it. Those that there are keep what they agreed on.
    pub fn put_in_place(self) {
        *self.certificate.0.write().unwrap_or_else(PoisonError::into_inner) = self.next.into();
    }
}

/// What clients are shown.
fn to_clients(tls: &ServerTls) -> Result<Arc<ServerConfig>> {
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
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = || CertificateDer::pem_file_iter(file)?.collect::<std::result::Result<Vec<_>, _>>();
    let chain =
        read().map_err(|error| refused(file, "holds no certificates in PEM that can be read", error))?;
    if chain.is_empty() {
        return Err(refused(file, "holds no certificate", "it has no `-----BEGIN CERTIFICATE-----`"));
    }
    Ok(chain)
}

/// The cryptography that TLS is made with.
pub fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A file that cannot be used, and why.
pub fn refused(file: &Path, what: &str, why: impl Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("{} {what}: {why}", file.display()))
}

/// No version of TLS can be used.
pub fn unusable(error: &rustls::Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("no version of TLS can be used: {error}"))
}
