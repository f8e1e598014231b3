//! How one server is connected to: its address, who to be there, and whom to trust.

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo,
    RedisResult, TlsCertificates,
};
use rustls::crypto::{CryptoProvider, ring};
use semel::Result;

use crate::config::{Address, Config, Login, Tls, invalid};

/// Connects to servers, each in the same way.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    login: Login,
    database: i64,
    certificates: Option<TlsCertificates>,
    settings: AsyncConnectionConfig,
}

impl Connector {
    /// Reads the certificates, once and for all.
    pub(crate) fn new(config: &Config) -> Result<Self> {
        Ok(Self {
            login: config.login.clone(),
            database: config.database,
            certificates: config.tls.as_ref().map(certificates).transpose()?,
            settings: AsyncConnectionConfig::new()
                .set_connection_timeout(Some(config.connect_within))
                .set_response_timeout(Some(config.reply_within)),
        })
    }

    /// The same with another login, and without a database: for sentinels.
    pub(crate) fn for_sentinels(&self, login: Login) -> Self {
        Self { login, database: 0, ..self.clone() }
    }

    pub(crate) async fn connect(&self, address: &Address) -> RedisResult<MultiplexedConnection> {
        self.client(address)?.get_multiplexed_async_connection_with_config(&self.settings).await
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
    // The driver takes the process's own provider. Where the process has not chosen one, it is ours; if somebody else
    // chooses at the same moment, theirs is as good.
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
