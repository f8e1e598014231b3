//! Connections of HTTP/1.1 to an upstream.

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use super::*;
use semel_listen::PlainOrTls;

/// A connection to an upstream that does what the test says, and the upstream's end of it.
async fn linked() -> (Link, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let address = listener.local_addr().expect("has one");
    let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
    let ours = ours.expect("connects");
    let socket = rustix::io::dup(&ours).expect("is doubled");
    let link = Link::new(Dialled { wire: PlainOrTls::Plain(ours), socket }).await.expect("speaks HTTP");
    (link, theirs.expect("is taken").0)
}

/// Whether a connection is dead once the kernel has heard what the upstream did to it.
async fn is_dead_soon(link: &Link) -> bool {
    for _ in 0..1_000 {
        if link.is_dead() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    false
}

fn pool(idle_max: usize, idle_timeout: Duration) -> Pool {
    Pool::new(idle_max, idle_timeout, Abandoned::new())
}

/// The port at this end, by which connections are told apart.
fn port(link: &Link) -> u16 {
    let address = rustix::net::getsockname(&link.socket).expect("has an address");
    std::net::SocketAddr::try_from(address).expect("is of TCP").port()
}

#[tokio::test]
async fn an_idle_connection_that_was_closed_or_sent_bytes_unasked_is_never_used_again() {
    let (quiet, _theirs) = linked().await;
    assert!(!quiet.is_dead());
    let (closed, theirs) = linked().await;
    drop(theirs);
    assert!(is_dead_soon(&closed).await);
    let (talking, mut theirs) = linked().await;
    theirs.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("is sent");
    assert!(is_dead_soon(&talking).await, "it would be taken for the answer to the next request");
    let pool = pool(9, Duration::from_mins(1));
    let good = port(&quiet);
    for link in [quiet, closed, talking] {
        pool.put(link);
    }
    assert_eq!(pool.take().as_ref().map(port), Some(good));
    assert!(pool.take().is_none());
}

#[tokio::test]
async fn the_freshest_connection_is_used_first_and_no_more_are_kept_than_may_be() {
    let pool = pool(2, Duration::from_mins(1));
    let (mut ports, mut upstreams) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (link, theirs) = linked().await;
        ports.push(port(&link));
        upstreams.push(theirs);
        pool.put(link);
    }
    let taken: Vec<_> = std::iter::from_fn(|| pool.take()).map(|link| port(&link)).collect();
    assert_eq!(taken, [ports[1], ports[0]], "there was no room for the third");
}

#[tokio::test]
async fn a_connection_is_idle_from_its_last_use_on_and_closed_once_that_was_too_long() {
    const IDLE: Duration = Duration::from_secs(4);
    let (first, _first_upstream) = linked().await;
    let (second, _second_upstream) = linked().await;
    let pool = pool(9, IDLE);
    let (older, younger) = (port(&first), port(&second));
    tokio::time::pause();
    pool.put(first);
    tokio::time::advance(IDLE * 3 / 4).await;
    pool.put(second);
    tokio::time::advance(IDLE / 2).await;
    pool.tidy();
    let left: Vec<_> = pool.links().iter().map(port).collect();
    assert_eq!(left, [younger], "{older} was idle for too long");
    // Used again, it is fresh again.
    let link = pool.take().expect("is still good");
    pool.put(link);
    tokio::time::advance(IDLE * 3 / 4).await;
    let link = pool.take().expect("is still good");
    pool.put(link);
    tokio::time::advance(IDLE).await;
    assert!(pool.take().is_none());
}
