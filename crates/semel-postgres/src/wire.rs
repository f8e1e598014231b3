//! One connection: its bytes are carried by a task of its own, which also hears what the server says unasked.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use semel::Result;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio_postgres::error::DbError;
use tokio_postgres::{
    AsyncMessage, Client, Connection, NoTls, Notification, SimpleQueryMessage, SimpleQueryRow,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::Config;
use crate::error::{Sent, error, invalid};

/// The server's function that waits for synchronous standbys. A warning from it says that a commit stopped waiting: it
/// is done on this server, and perhaps on no other. Names of functions are not translated, messages are.
const WAIT_FOR_STANDBYS: &str = "SyncRepWaitForLSN";

/// A connection, and what was heard on it beside answers.
pub(crate) struct Wire {
    client: Client,
    task: AbortHandle,
    unreplicated_commits: Arc<AtomicU64>,
    is_given_up: AtomicBool,
}

/// How connections are encrypted; `None`: not at all.
pub(crate) type Tls = Option<MakeRustlsConnect>;

impl Wire {
    /// Connects, and hands every notification to `notified`.
    pub(crate) async fn open(
        server: &tokio_postgres::Config,
        tls: &Tls,
        notified: impl Fn(&Notification) + Send + 'static,
    ) -> Result<Self, tokio_postgres::Error> {
        let unreplicated_commits = Arc::<AtomicU64>::default();
        let heard = Heard { unreplicated_commits: Arc::clone(&unreplicated_commits), notified };
        let (client, task) = if let Some(tls) = tls {
            let (client, connection) = server.connect(tls.clone()).await?;
            (client, tokio::spawn(heard.carry(connection)))
        } else {
            let (client, connection) = server.connect(NoTls).await?;
            (client, tokio::spawn(heard.carry(connection)))
        };
        let task = task.abort_handle();
        Ok(Self { client, task, unreplicated_commits, is_given_up: AtomicBool::new(false) })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The rows of a statement that changes nothing, as text. In the simple protocol: it prepares nothing, which a pooler
    /// could not keep.
    pub(crate) async fn read(&self, text: &str) -> Result<Vec<Vec<Option<String>>>> {
        let messages = self.client.simple_query(text).await.map_err(|failed| error(failed, Sent::No))?;
        Ok(text_rows(&messages))
    }

    /// How many commits on this connection stopped waiting for their standbys. An answer during which it grew is
    /// unknown. The warning is sent before the end of the answer, so it is counted before that is heard.
    pub(crate) fn unreplicated_commits(&self) -> u64 {
        self.unreplicated_commits.load(Ordering::Acquire)
    }

    /// Closes the connection at once. What was asked on it goes on at the server: nothing is cancelled.
    pub(crate) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Release);
        self.task.abort();
    }

    /// Whether nothing can be asked on it any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire) || self.client.is_closed()
    }
}

/// The rows of an answer in the simple protocol: the text of each field, or none if it is null.
#[expect(clippy::wildcard_enum_match_arm, reason = "the driver's enum may grow, and only rows are wanted")]
pub(crate) fn text_rows(messages: &[SimpleQueryMessage]) -> Vec<Vec<Option<String>>> {
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let field = |row: &SimpleQueryRow, at: usize| row.try_get(at).ok().flatten().map(str::to_owned);
    rows.map(|row| (0..row.len()).map(|at| field(row, at)).collect()).collect()
}

/// What the task of a connection hears beside answers.
struct Heard<N> {
    unreplicated_commits: Arc<AtomicU64>,
    notified: N,
}

impl<N: Fn(&Notification) + Send> Heard<N> {
    /// Carries a connection's bytes for as long as its client is held.
    async fn carry<S, T>(self, mut connection: Connection<S, T>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notice(notice)) => self.hear(&notice),
                Ok(AsyncMessage::Notification(notification)) => (self.notified)(&notification),
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "semel: a connection to PostgreSQL ended");
                    return;
                }
            }
        }
    }

    fn hear(&self, notice: &DbError) {
        if notice.routine() == Some(WAIT_FOR_STANDBYS) {
            self.unreplicated_commits.fetch_add(1, Ordering::Release);
            tracing::warn!(warning = notice.message(), "semel: a commit did not wait for its standby");
        }
    }
}

/// How the config wants connections to be encrypted.
pub(crate) fn tls(config: &Config) -> Result<Tls> {
    if !config.wants_tls() {
        return Ok(None);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("TLS cannot be set up").caused_by(error))?;
    let tls = versions.with_root_certificates(authorities(config)?).with_no_client_auth();
    Ok(Some(MakeRustlsConnect::new(tls)))
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
