//! Where a master is, asked of the sentinels that watch it.

use redis::Value;
use redis::aio::MultiplexedConnection;

use super::client::Connector;
use crate::config::Address;
use crate::error::{Failure, ServerResult};
use crate::reply;

/// The master's address, by the first sentinel that knows it.
pub(super) async fn master(
    sentinels: &[Address],
    connector: &Connector,
    name: &str,
) -> ServerResult<Address> {
    let mut failure = Failure::no_server("there are no sentinels; name some in the URL");
    for sentinel in sentinels {
        match connector.connect(sentinel).await {
            Ok(connection) => match ask(connection, name).await {
                Ok(Some(address)) => return Ok(address),
                Ok(None) => {
                    failure = Failure::no_server(format!(
                        "the sentinel at {sentinel} knows no master `{name}`; see the URL's last part"
                    ));
                }
                Err(error) => failure = Failure::unreached(sentinel, &error),
            },
            Err(error) => failure = Failure::unreached(sentinel, &error),
        }
    }
    Err(failure)
}

async fn ask(mut connection: MultiplexedConnection, name: &str) -> redis::RedisResult<Option<Address>> {
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let answer: Value = command.query_async(&mut connection).await?;
    let mut parts = reply::list(answer, "a sentinel").unwrap_or_default().into_iter();
    let (host, port) = (parts.next().and_then(reply::text), parts.next().and_then(reply::number));
    Ok(host.zip(port).and_then(|(host, port)| Some(Address { host, port: u16::try_from(port).ok()? })))
}
