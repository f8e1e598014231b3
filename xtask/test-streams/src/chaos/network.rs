//! Five seconds without a network: nothing gets through, and nobody is told.

use std::time::Duration;

use test_services::postgres_url;

use super::relay::Relay;
use super::trial::{goes_on, on_postgres};
use crate::promises::Broker;

/// How long nothing gets through.
pub const OUTAGE: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_mins(1);

/// Two consumers go on by themselves after their broker could not be reached.
pub async fn consumers_live_without_their_broker(broker: &mut impl Broker) {
    let pipeline = on_postgres(&postgres_url().unwrap(), LEASE).await;
    let relay = Relay::to(broker.port()).await;
    let port = relay.port();
    goes_on(broker, &pipeline, port, 2, async |_, effects| {
        relay.drop_everything(OUTAGE, || effects.open()).await;
    })
    .await;
}
