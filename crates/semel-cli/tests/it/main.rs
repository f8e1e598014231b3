//! The real binary, run as a person or a script would.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test that cannot go on should say so"
)]

mod abuse;
mod arguments;
mod bench_and_file;
mod binary;
mod clients;
mod consume;
mod demo;
mod documented;
#[cfg(feature = "full")]
mod features;
mod http;
mod list;
mod offsets;
mod open_files;
mod place;
mod proxy_check;
mod receipts;
mod records;
mod remote;
mod request_log;
mod scale;
mod serve;
mod serving;
mod settle;
mod show;
mod stopping;
mod store_health;
mod terminal;
mod tools;
mod transfer;

/// Runs each test on every store, and through every process that may have one: to add one is a line here.
#[macro_export]
macro_rules! on_every_store {
    ($($name:ident)*) => {
        $crate::on_every_store!(@ file [$($name)*]);
        $crate::on_every_store!(@ postgres [$($name)*]);
        $crate::on_every_store!(@ redis [$($name)*]);
        $crate::on_every_store!(@ redis_cluster [$($name)*]);
        $crate::on_every_store!(@ behind_a_server [$($name)*]);
        $crate::on_every_store!(@ beside_a_proxy [$($name)*]);
    };
    (@ $store:ident [$($name:ident)*]) => {
        mod $store {
            $(#[test]
            fn $name() {
                super::$name(&$crate::place::Place::$store());
            })*
        }
    };
}
