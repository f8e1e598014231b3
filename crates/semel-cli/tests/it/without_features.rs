//! What a build says that lacks a feature; and that a build that has it says nothing of the kind.
//!
//! Run for a build without any by `cargo xtask test --all`, and for one with all of them by every test run.

use std::fs;

use crate::binary::run;

/// Whether the line fails with the words that name the feature.
fn is_refused_for(line: &str, what: &str, feature: &str) -> bool {
    let ran = run(line);
    assert_ne!(ran.code, Some(0), "{line}: {}", ran.out);
    ran.err.contains(&format!("this build has no {what}; build with `--features {feature}`"))
}

#[test]
fn a_broker_is_refused_only_where_its_feature_is_missing() {
    for (source, broker, feature, is_built_in) in [
        ("nats://127.0.0.1:1/S?durable=d", "NATS", "nats", cfg!(feature = "nats")),
        ("amqp://127.0.0.1:1/v?queue=q", "RabbitMQ", "rabbitmq", cfg!(feature = "rabbitmq")),
        (
            "redis://127.0.0.1:1?stream=s&group=g",
            "Redis Streams",
            "redis-streams",
            cfg!(feature = "redis-streams"),
        ),
    ] {
        let line = format!("--store memory: consume --pipeline p --exec true --source {source}");
        assert_eq!(is_refused_for(&line, broker, feature), !is_built_in, "{source}");
    }
}

#[test]
fn a_store_is_refused_only_where_its_feature_is_missing() {
    for (store, name, feature, is_built_in) in [
        ("postgres://127.0.0.1:1/d", "PostgreSQL", "postgres", cfg!(feature = "postgres")),
        ("redis://127.0.0.1:1", "Redis", "redis", cfg!(feature = "redis")),
    ] {
        assert_eq!(is_refused_for(&format!("--store {store} stats"), name, feature), !is_built_in, "{store}");
    }
}

#[test]
fn callers_by_jwt_are_refused_only_where_the_feature_is_missing() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let (config, secret) = (folder.path().join("semel.toml"), folder.path().join("secret"));
    fs::write(&secret, "a secret of thirty-two bytes, and more").expect("is written");
    let rules =
        format!("[principal]\nfrom = 'jwt'\nalgorithm = 'HS256'\nsecret_file = '{}'\n", secret.display());
    fs::write(&config, rules).expect("is written");
    let line = format!("proxy --upstream http://127.0.0.1:1 --check --config {}", config.display());
    if cfg!(feature = "jwt") {
        run(&line).fine();
    } else {
        assert!(is_refused_for(&line, "JWT", "jwt"));
    }
}

#[cfg(not(feature = "kafka"))]
#[test]
fn kafka_is_refused_where_its_feature_is_missing() {
    let line = "--store memory: consume --pipeline p --exec true --source kafka://127.0.0.1:1/t?group=g";
    assert!(is_refused_for(line, "Kafka", "kafka"));
}

#[cfg(not(feature = "otlp"))]
#[test]
fn traces_are_refused_where_their_feature_is_missing() {
    let line = "--store memory: serve --listen 127.0.0.1:0 --otlp http://127.0.0.1:4318";
    assert!(is_refused_for(line, "OTLP", "otlp"));
}
