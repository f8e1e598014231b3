//! Redis: one server and its replicas, a cluster, a sentinel.

mod cluster;
mod node;
mod sentinel;
mod server;
mod with_sentinel;

pub use cluster::RedisCluster;
pub use node::AppendFsync;
pub use sentinel::Sentinel;
pub use server::Redis;
pub use with_sentinel::RedisWithSentinel;
