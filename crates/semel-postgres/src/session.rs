//! One connection: made, secured, set up and checked before anything is asked over it.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use semel::Result;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{Client, Connection, NoTls, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::Config;
use crate::error::{Sent, error, invalid};
use crate::statement::{INSERT_ONE, LOAD, MOMENT, PARAMETER_TYPES, SWAP_BATCH, SWEEP, UPDATE_ONE};
use crate::{check, schema};

/// A session is semel's alone, so it may set what it needs.
///
/// - No server-side time limits: they cancel statements, and a commit that is cancelled while it waits for a standby
///   has happened here and not there.
/// - READ COMMITTED, whatever the role's default is: a swap looks at the version again after it has waited.
/// - One plan for any number of rows, by the index: a plan that was made while the table was small must not stay.
const SET_UP: &str = "SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
     SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; \
     SET plan_cache_mode = force_generic_plan; SET jit = off; \
     SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

/// A connection that is ready for swaps.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) statements: Statements,
}

/// The statements that are asked over and over.
pub(crate) struct Statements {
    pub(crate) insert_one: Statement,
    pub(crate) update_one: Statement,
    pub(crate) swap_batch: Statement,
    pub(crate) load: Statement,
    pub(crate) sweep: Statement,
    pub(crate) now: Statement,
}

impl Session {
    /// Connects, and refuses a server that cannot keep the promise.
    pub(crate) async fn open(config: &Config) -> Result<Self> {
        let client = connect(config).await?;
        check::demand(&client, config).await?;
        schema::demand(&client).await?;
        let statements = Statements::prepared(&client).await.map_err(|failed| error(failed, Sent::No))?;
        Ok(Self { client, statements })
    }
}

impl Statements {
    async fn prepared(client: &Client) -> std::result::Result<Self, tokio_postgres::Error> {
        let (insert_one, update_one, swap_batch, load, sweep, now) = tokio::try_join!(
            client.prepare_typed(&INSERT_ONE, &PARAMETER_TYPES),
            client.prepare_typed(&UPDATE_ONE, &PARAMETER_TYPES),
            client.prepare(&SWAP_BATCH),
            client.prepare(&LOAD),
            client.prepare(SWEEP),
            client.prepare(MOMENT),
        )?;
        Ok(Self { insert_one, update_one, swap_batch, load, sweep, now })
    }
}

/// A connection that is set up; nothing of the server is checked yet.
pub(crate) async fn connect(config: &Config) -> Result<Client> {
    let failed = |failed| error(failed, Sent::No);
    let client = if config.wants_tls() {
        let (client, connection) = config.driver.connect(secured(config)?).await.map_err(failed)?;
        drive(connection);
        client
    } else {
        let (client, connection) = config.driver.connect(NoTls).await.map_err(failed)?;
        drive(connection);
        client
    };
    client.batch_execute(SET_UP).await.map_err(failed)?;
    Ok(client)
}

/// Carries a connection's bytes for as long as its client is held.
fn drive<S, T>(connection: Connection<S, T>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "semel: a connection to PostgreSQL ended");
        }
    });
}

pub(crate) fn secured(config: &Config) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("TLS cannot be set up").caused_by(error))?;
    let tls = versions.with_root_certificates(authorities(config)?).with_no_client_auth();
    Ok(MakeRustlsConnect::new(tls))
}

fn authorities(config: &Config) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = &config.trusted {
        let unread = || invalid(format!("sslrootcert={} cannot be read; give a PEM file", file.display()));
        let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unread().caused_by(error))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unread().caused_by(error))?;
            roots.add(certificate).map_err(|error| unread().caused_by(error))?;
        }
    } else {
        // On a machine without any the first handshake fails, because it then trusts no certificate.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    Ok(roots)
}
