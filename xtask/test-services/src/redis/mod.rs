//! Redis: one server and its replicas, a cluster, a sentinel.

mod ask;
mod cluster;
mod node;
mod sentinel;
mod server;
mod settings;

pub use cluster::RedisCluster;
pub use sentinel::Sentinel;
pub use server::Redis;
pub use settings::AppendFsync;
