//! One connection, from a client to the server and back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::proxy::{Fault, Way};

/// How much is read in one go: more than most requests have, so that one is counted once.
const CHUNK_BYTES: usize = 64 << 10;

/// Hands bytes on both ways until either side is gone or a fault cuts them both off.
pub(super) async fn link(client: TcpStream, upstream: SocketAddr, way: Arc<Way>) {
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    // A proxy that waits to fill its packets would measure itself.
    drop((client.set_nodelay(true), server.set_nodelay(true)));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let losing = AtomicBool::new(false);
    // Whichever ends first takes the other along: both sockets are closed.
    tokio::select! {
        _ = requests(from_client, to_server, &way, &losing) => {}
        _ = answers(from_server, to_client, &way, &losing) => {}
    }
}

async fn requests(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    way: &Way,
    losing: &AtomicBool,
) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = client.read(&mut chunk).await?;
        let request = chunk.get(..count).filter(|bytes| !bytes.is_empty());
        let Some(request) = request else { return Ok(()) };
        match way.next_fault() {
            Fault::None => {}
            // Noted before the server can answer.
            Fault::LoseAnswer => losing.store(true, Ordering::Release),
            Fault::DropRequest => {
                way.dropped.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Fault::Delay(delay) => tokio::time::sleep(delay).await,
        }
        server.write_all(request).await?;
        way.forwarded.fetch_add(1, Ordering::Relaxed);
    }
}

async fn answers(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    way: &Way,
    losing: &AtomicBool,
) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = server.read(&mut chunk).await?;
        let answer = chunk.get(..count).filter(|bytes| !bytes.is_empty());
        let Some(answer) = answer else { return Ok(()) };
        if losing.load(Ordering::Acquire) {
            way.lost.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        client.write_all(answer).await?;
    }
}
