//! Every source, on its broker.

mod ask;
mod file;
