//! A new connection to the upstream, and whom to trust as it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use semel::{Error, ErrorKind, Result};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsConnector, TlsStream};

use crate::settings::{ProxySettings, UpstreamVersion};
use semel_listen::PlainOrTls;
use semel_listen::tls::{certificates, provider, refused, unusable};

/// Where the upstream is, and how it is secured.
pub(super) struct Dial {
    host: Box<str>,
    port: u16,
    secured: Option<(TlsConnector, ServerName<'static>)>,
    connect_timeout: Duration,
}

/// A new connection.
pub(super) struct Dialled {
    pub(super) wire: PlainOrTls,
    /// The same socket again, to look at it without reading from it.
    pub(super) socket: OwnedFd,
}

impl Dial {
    pub(super) fn new(
        upstream: &Uri,
        tls: Option<Arc<ClientConfig>>,
        connect_timeout: Duration,
    ) -> Result<Self> {
        let refused = |message: String| Error::new(ErrorKind::Invalid, message);
        let authority = upstream.authority().ok_or_else(|| {
            refused(format!("`{upstream}` names no host: use `http://127.0.0.1:3000`, say"))
        })?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let secured = tls
            .map(|config| {
                let name = ServerName::try_from(host.to_owned())
                    .map_err(|_| refused(format!("`{host}` is no name that a certificate could carry")))?;
                Ok::<_, Error>((TlsConnector::from(config), name))
            })
            .transpose()?;
        let port_default = if upstream.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        let port = authority.port_u16().unwrap_or(port_default);
        Ok(Self { host: host.into(), port, secured, connect_timeout })
    }

    /// Connects, and secures the line if it is to be.
    pub(super) async fn dial(&self) -> io::Result<Dialled> {
        let too_slow = |_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time");
        timeout(self.connect_timeout, self.connect()).await.map_err(too_slow)?
    }

    async fn connect(&self) -> io::Result<Dialled> {
        let stream = connected(TcpStream::connect((&*self.host, self.port))).await?;
        stream.set_nodelay(true)?;
        let socket = rustix::io::dup(&stream)?;
        let wire = match &self.secured {
            None => PlainOrTls::Plain(stream),
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await?;
                PlainOrTls::Secured(Box::new(TlsStream::Client(stream)))
            }
        };
        Ok(Dialled { wire, socket })
    }
}

/// Counts a connection, also one that is given up while it is made: the upstream may have seen it.
async fn connected(connect: impl Future<Output = io::Result<TcpStream>>) -> io::Result<TcpStream> {
    struct Counted {
        is_refused: bool,
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            if !self.is_refused {
                metrics::counter!(semel::metrics::UPSTREAM_CONNECTS.name).increment(1);
            }
        }
    }
    let mut counted = Counted { is_refused: false };
    let stream = connect.await;
    counted.is_refused = stream.is_err();
    stream
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
