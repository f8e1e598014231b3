//! Brokers that the binary was built without.

use super::feed::{consumed, stopped};
use crate::place::Place;

#[test]
fn a_broker_that_the_binary_was_built_without_is_refused_with_the_feature_to_add() {
    let place = Place::file();
    for (source, broker, feature, is_built_in) in [
        ("nats://127.0.0.1:1/S?durable=d", "NATS", "nats", cfg!(feature = "nats")),
        ("amqp://127.0.0.1:1/v?queue=q", "RabbitMQ", "rabbitmq", cfg!(feature = "rabbitmq")),
        (
            "redis://127.0.0.1:1?stream=s&group=g",
            "Redis Streams",
            "redis-streams",
            cfg!(feature = "redis-streams"),
        ),
        ("kafka://127.0.0.1:1/t?group=g", "Kafka", "kafka", cfg!(feature = "kafka")),
    ] {
        if is_built_in {
            continue;
        }
        let error = stopped(&consumed(&place, source, "true", ""));
        let expected = format!("this build has no {broker}; build with `--features {feature}`");
        assert!(error.contains(&expected), "{error}");
    }
}
