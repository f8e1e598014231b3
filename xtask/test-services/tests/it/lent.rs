//! The servers that tests share.

use test_services::{nats_url, postgres_url, rabbitmq_url, redis_cluster_url, redis_url};

#[test]
fn a_process_gets_the_same_server_whenever_it_asks() {
    for lend in [postgres_url, redis_url, redis_cluster_url, nats_url, rabbitmq_url] {
        let first = lend().unwrap();
        assert!(first.contains("127.0.0.1:"), "{first:?}");
        assert_eq!(lend().unwrap(), first);
    }
}
