//! A process with one handler behind one layer: it says on which port, and serves until its input ends.

use std::io::Read;
use std::net::Ipv4Addr;
use std::thread;

use anyhow::{Context, Result};
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::layers::router;
use crate::args::HttpServeAsk;
use crate::runtime::runtime;

/// Serves what is asked for.
pub(crate) fn run(ask: &HttpServeAsk) -> Result<()> {
    let threads = thread::available_parallelism().map_or(2, usize::from);
    runtime(threads)?.block_on(serve(ask))
}

async fn serve(ask: &HttpServeAsk) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("there is no port")?;
    let router = router(ask)?;
    println!("{}", listener.local_addr()?.port());
    let (over, is_over) = oneshot::channel();
    thread::spawn(move || {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        let _ = over.send(());
    });
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    tokio::select! {
        served = async { axum::serve(listener, router).await } => Ok(served?),
        // Clients may still be connected; they are of no interest any more.
        _ = is_over => Ok(()),
    }
}
