//! Whom to trust as the upstream, from PEM files to what rustls wants.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use semel::Result;

use super::settings::{ProxySettings, UpstreamVersion};
use semel_listen::tls::{certificates, provider, refused, unusable};

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
