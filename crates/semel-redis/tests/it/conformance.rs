//! The suite, on one server and on a cluster.

use semel_redis::RedisStore;

mod one {
    use super::RedisStore;

    async fn open() -> RedisStore {
        let url = test_services::redis_url().unwrap();
        RedisStore::connect(&url).await.unwrap()
    }

    semel_testkit::conformance!(open);
}

mod cluster {
    use super::RedisStore;

    async fn open() -> RedisStore {
        let url = test_services::redis_cluster_url().unwrap();
        RedisStore::connect(&url).await.unwrap()
    }

    semel_testkit::conformance!(open);
}
