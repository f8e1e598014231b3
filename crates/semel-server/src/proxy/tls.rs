//! Certificates and authorities, from PEM files to what rustls wants.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use semel::{Error, ErrorKind, Result};

use super::settings::{ProxySettings, ServerTls, UpstreamVersion};

/// What clients are shown.
pub(super) fn to_clients(tls: &ServerTls) -> Result<Arc<ServerConfig>> {
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

/// Whom to trust, and what to speak, towards the upstream.
pub(super) fn to_upstream(settings: &ProxySettings) -> Result<Arc<ClientConfig>> {
    let mut authorities = RootCertStore::empty();
    // What cannot be read of the system's is left out: the authority that matters may be among the others.
    authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = &settings.upstream_authorities {
        for certificate in certificates(file)? {
            authorities
                .add(certificate)
                .map_err(|error| refused(file, "holds a certificate that is no authority's", error))?;
        }
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    config.alpn_protocols = match settings.upstream_version {
        UpstreamVersion::Http1 => vec![b"http/1.1".to_vec()],
        UpstreamVersion::Http2 => vec![b"h2".to_vec()],
    };
    Ok(Arc::new(config))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = || CertificateDer::pem_file_iter(file)?.collect::<std::result::Result<Vec<_>, _>>();
    let chain =
        read().map_err(|error| refused(file, "holds no certificates in PEM that can be read", error))?;
    if chain.is_empty() {
        return Err(refused(file, "holds no certificate", "it has no `-----BEGIN CERTIFICATE-----`"));
    }
    Ok(chain)
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn refused(file: &Path, what: &str, why: impl Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("{} {what}: {why}", file.display()))
}

fn unusable(error: &rustls::Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("no version of TLS can be used: {error}"))
}
