//! A way to a broker that can be cut.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A port that leads to a broker's.
pub struct Way {
    port: u16,
    cut: watch::Sender<()>,
}

impl Way {
    /// Leads to this port of this machine.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let (cut, is_cut) = watch::channel(());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, SocketAddr::from(([127, 0, 0, 1], port)), is_cut.clone()));
            }
        });
        Self { port: own, cut }
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends every connection that there is; new ones may be made.
    pub async fn cut(&self) {
        self.cut.send_replace(());
        // The broker has to notice too.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn carry(mut client: TcpStream, to: SocketAddr, mut is_cut: watch::Receiver<()>) {
    is_cut.mark_unchanged();
    let Ok(mut broker) = TcpStream::connect(to).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut broker) => {}
        _ = is_cut.changed() => {}
    }
}
