//! A build with every feature refuses nothing for the lack of one. What a build without them says is a step of
//! `cargo xtask test --all`, on the binary alone: the dependencies of tests would bring features along.

use std::fs;

use crate::binary::run;

#[test]
fn no_broker_and_no_store_is_refused_for_the_lack_of_a_feature() {
    for words in [
        "--store memory: consume --pipeline p --exec true --source nats://127.0.0.1:1/S?durable=d",
        "--store memory: consume --pipeline p --exec true --source amqp://127.0.0.1:1/v?queue=q",
        "--store memory: consume --pipeline p --exec true --source redis://127.0.0.1:1?stream=s&group=g",
        "--store postgres://127.0.0.1:1/d stats",
        "--store redis://127.0.0.1:1 stats",
    ] {
        let error = run(words).err;
        assert!(error.contains("error: ") && !error.contains("build with `--features"), "{words}: {error}");
    }
}

#[test]
fn callers_may_be_known_by_their_jwt() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let (config, secret) = (folder.path().join("semel.toml"), folder.path().join("secret"));
    fs::write(&secret, "a secret of thirty-two bytes, and more").expect("is written");
    let rules =
        format!("[principal]\nfrom = 'jwt'\nalgorithm = 'HS256'\nsecret_file = '{}'\n", secret.display());
    fs::write(&config, rules).expect("is written");
    run(&format!("proxy --upstream http://127.0.0.1:1 --check --config {}", config.display())).fine();
}
