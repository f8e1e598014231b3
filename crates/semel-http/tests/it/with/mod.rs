//! The layer among the layers, servers and proxies that services have around it, over real sockets. `docs/using-it-with.md`
//! has a section for each of these files.

mod body_limits;
mod compression;
mod grpc;
mod http2;
mod login;
mod nginx;
mod rate_limits;
mod routers;
mod several_layers;
mod shop;
mod timeouts;
mod tower_services;
mod tracing;
mod upgrades;
