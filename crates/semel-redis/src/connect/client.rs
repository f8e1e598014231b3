//! How one server is connected to: its address, the login, and the trusted certificates.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo,
    RedisError, RedisResult, TlsCertificates,
};
use rustls::crypto::{CryptoProvider, ring};
use semel::Result;

use crate::config::{Address, Config, Login, Tls, invalid};

/// How long a sentinel may take to connect or to answer: others know the same.
const SENTINEL_WITHIN: Duration = Duration::from_secs(1);

/// Connects to servers, each in the same way.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    login: Login,
    database: i64,
    certificates: Option<TlsCertificates>,
    connect_within: Duration,
    reply_within: Duration,
    /// The command that gives the user its rights.
    grant: Arc<str>,
}

impl Connector {
    /// Reads the certificates.
    pub(crate) fn new(config: &Config) -> Result<Self> {
        Ok(Self {
            login: config.login.clone(),
            database: config.database,
            certificates: config.tls.as_ref().map(certificates).transpose()?,
            connect_within: config.connect_within,
            reply_within: config.reply_within,
            grant: config.grant().into(),
        })
    }

    /// The same with another login, without a database, and soon giving up: for sentinels, of which there are several.
    pub(crate) fn for_sentinels(&self, login: Login) -> Self {
        Self {
            login,
            database: 0,
            connect_within: self.connect_within.min(SENTINEL_WITHIN),
            reply_within: self.reply_within.min(SENTINEL_WITHIN),
            grant: "ACL SETUSER USER +sentinel|get-master-addr-by-name +sentinel|master +subscribe +ping &+switch-master"
                .into(),
            ..self.clone()
        }
    }

    pub(crate) fn grant(&self) -> &str {
        &self.grant
    }

    pub(crate) async fn connect(&self, address: &Address) -> RedisResult<MultiplexedConnection> {
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_within))
            .set_response_timeout(Some(self.reply_within));
        self.client(address)?.get_multiplexed_async_connection_with_config(&settings).await
    }

    /// A connection on which a server sends what is published there.
    pub(crate) async fn subscribe(&self, address: &Address, channel: &str) -> RedisResult<PubSub> {
        let connect = async {
            let mut connection = self.client(address)?.get_async_pubsub().await?;
            connection.subscribe(channel).await?;
            Ok(connection)
        };
        let late = |_| RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        tokio::time::timeout(self.connect_within, connect).await.map_err(late)?
    }

    fn client(&self, address: &Address) -> RedisResult<Client> {
        let Address { host, port } = address.clone();
        let mut redis = RedisConnectionInfo::default().set_db(self.database).set_skip_set_lib_name();
        if let Some(user) = &self.login.user {
            redis = redis.set_username(user);
        }
        if let Some(password) = &self.login.password {
            redis = redis.set_password(password);
        }
        // Without nodelay, a small command may wait for the acknowledgement of the one before it.
        let info = |address: ConnectionAddr| {
            let tcp = TcpSettings::default().set_nodelay(true);
            address.into_connection_info().map(|info| info.set_redis_settings(redis).set_tcp_settings(tcp))
        };
        match &self.certificates {
            None => Client::open(info(ConnectionAddr::Tcp(host, port))?),
            Some(certificates) => {
                let address = ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None };
                Client::build_with_tls(info(address)?, certificates.clone())
            }
        }
    }
}

fn certificates(tls: &Tls) -> Result<TlsCertificates> {
    // The driver takes the process's own provider. Where the process has not chosen one, it is ours; one that is chosen
    // elsewhere at the same moment is as good.
    if CryptoProvider::get_default().is_none() {
        let _ = ring::default_provider().install_default();
    }
    let read = |path: &std::path::PathBuf| {
        let unread = |error| invalid(format!("cannot read {}: {error}; see the URL", path.display()));
        std::fs::read(path).map_err(unread)
    };
    let client_tls = match &tls.identity {
        None => None,
        Some((cert, key)) => Some(ClientTlsConfig { client_cert: read(cert)?, client_key: read(key)? }),
    };
    Ok(TlsCertificates { client_tls, root_cert: tls.ca.as_ref().map(read).transpose()? })
}
