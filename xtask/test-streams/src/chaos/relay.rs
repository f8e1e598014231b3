//! A way to a server that can be cut off.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A port that leads to a server's.
pub struct Relay {
    port: u16,
    is_open: watch::Sender<bool>,
}

impl Relay {
    /// Leads to this port of this machine.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let (is_open, state) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, SocketAddr::from(([127, 0, 0, 1], port)), state.clone()));
            }
        });
        Self { port: own, is_open }
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Nothing gets through for so long, in either direction, and only `meanwhile` is told. Connections from before have ended then;
    /// those that were tried meanwhile are made.
    pub async fn drop_everything(&self, long: Duration, meanwhile: impl FnOnce()) {
        self.is_open.send_replace(false);
        meanwhile();
        tokio::time::sleep(long).await;
        self.is_open.send_replace(true);
    }
}

async fn carry(mut client: TcpStream, to: SocketAddr, mut is_open: watch::Receiver<bool>) {
    let _ = is_open.wait_for(|open| *open).await;
    let Ok(mut server) = TcpStream::connect(to).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => return,
        _ = is_open.wait_for(|open| !*open) => {}
    }
    // Held, and silent: neither side hears of an end before the network is back.
    let _ = is_open.wait_for(|open| *open).await;
}
