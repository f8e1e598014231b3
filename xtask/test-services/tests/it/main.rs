//! Every server starts, answers, keeps what it acknowledged, and is gone afterwards.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod gone;
mod lent;
mod nats;
mod postgres;
mod rabbitmq;
mod redis;
