//! The least that a server with JSON in and out can be: what it was asked, read into a value and written again.

use std::io::Read;
use std::net::Ipv4Addr;
use std::thread;

use anyhow::{Context, Result};
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::runtime::runtime;

pub(super) const PATH: &str = "/echo";

/// What a claim is, as the echo knows it.
#[derive(Debug, Serialize, Deserialize)]
struct Claim {
    scope: Vec<String>,
    operation: String,
    name: String,
    owner: String,
}

/// Says on which port it is, and serves until its input ends.
pub(crate) fn run() -> Result<()> {
    let threads = thread::available_parallelism().map_or(2, usize::from);
    runtime(threads)?.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("there is no port")?;
        println!("{}", listener.local_addr()?.port());
        let (over, is_over) = oneshot::channel();
        thread::spawn(move || {
            drop(std::io::stdin().read_to_end(&mut Vec::new()));
            let _ = over.send(());
        });
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        tokio::select! {
            served = async { axum::serve(listener, router()).await } => Ok(served?),
            // Clients may still be connected; they are of no interest any more.
            _ = is_over => Ok(()),
        }
    })
}

pub(super) fn router() -> Router {
    Router::new().route(PATH, post(async |Json(claim): Json<Claim>| Json(claim)))
}
