//! Servers that forget the script, hang, die and come back.

use std::sync::Arc;
use std::time::Duration;

use semel::ErrorKind;
use semel::store::SwapReply;
use semel_redis::RedisStore;
use semel_testkit::sample;
use test_services::{AppendFsync, Redis};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::tries::{LONG, first, load, put, swap, until};

#[tokio::test]
async fn a_script_that_the_server_forgot_is_loaded_again() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    for _ in 0..20 {
        server.ask(&["SCRIPT", "FLUSH"]).unwrap();
        put(&store, LONG).await;
    }
}

#[tokio::test]
async fn a_server_that_was_killed_is_found_again_with_all_that_it_acknowledged() {
    let mut server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    for _ in 0..3 {
        let record = put(&store, LONG).await;
        server.kill().unwrap();
        let key = sample::key("down").unwrap();
        // The connection was lost with the first; after that there is no server to connect to.
        let _ = swap(&store, first(&key, LONG)).await.unwrap_err();
        let error = swap(&store, first(&key, LONG)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        server.resume().unwrap();
        assert_eq!(load(&store, &record.key).await.unwrap().as_ref(), Some(&record));
        assert!(matches!(swap(&store, first(&key, LONG)).await.unwrap(), SwapReply::Swapped(_)));
    }
}

#[tokio::test]
async fn all_connections_are_replaced_after_the_first_that_broke() {
    let mut server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::builder(&server.url()).connections(8).connect().await.unwrap();
    for _ in 0..8 {
        put(&store, LONG).await;
    }
    server.kill().unwrap();
    server.resume().unwrap();
    let key = sample::key("again").unwrap();
    let first_try = swap(&store, first(&key, LONG)).await;
    assert!(first_try.is_err_and(|error| error.kind() == ErrorKind::Unknown));
    for _ in 0..8 {
        put(&store, LONG).await;
    }
}

#[tokio::test]
async fn a_reply_that_does_not_come_in_time_is_unknown_and_the_write_took() {
    let server = Redis::start_with(&[("enable-debug-command", "yes")]).unwrap();
    let within = Duration::from_millis(100);
    let store = RedisStore::builder(&server.url()).reply_within(within).connect().await.unwrap();
    put(&store, LONG).await;
    let sleeper = std::thread::spawn(move || server.ask(&["DEBUG", "SLEEP", "1"]).map(|_| server));
    let (lost, error) = until("the server hangs", || async {
        let swapped = first(&sample::key("slow").unwrap(), LONG);
        Some((swapped.clone(), swap(&store, swapped).await.err()?))
    })
    .await;
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error:?}");
    let _server = sleeper.join().unwrap().unwrap();
    // Not all that is unknown has happened, but this has: the server had read it before it heard that we were gone.
    let found = until("the server goes on", || async { load(&store, lost.next.key()).await.ok()? }).await;
    assert_eq!(found, lost.next.stamp(found.version, found.changed_at));
}

/// Passes everything on, but cuts a connection instead of passing on a reply for which there is no permit.
async fn proxy(server: u16, replies: Arc<Semaphore>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let replies = Arc::clone(&replies);
            tokio::spawn(async move {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                let asks = tokio::spawn(async move {
                    let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
                });
                let mut bytes = vec![0; 64 * 1_024];
                while let Ok(read @ 1..) = from_server.read(&mut bytes).await {
                    let Ok(permit) = replies.try_acquire() else { break };
                    permit.forget();
                    if to_client.write_all(&bytes[..read]).await.is_err() {
                        break;
                    }
                }
                asks.abort();
            });
        }
    });
    port
}

#[tokio::test]
async fn a_lost_reply_is_unknown_and_asking_again_finds_the_first_swap() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let direct = RedisStore::connect(&server.url()).await.unwrap();
    let replies = Arc::new(Semaphore::new(10_000));
    let port = proxy(server.port(), Arc::clone(&replies)).await;
    let store = RedisStore::connect(&format!("redis://127.0.0.1:{port}?connections=1")).await.unwrap();
    put(&store, LONG).await;
    replies.forget_permits(usize::MAX);
    let key = sample::key("lost").unwrap();
    let lost = first(&key, LONG);
    let error = swap(&store, lost.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error:?}");
    let taken = load(&direct, &key).await.unwrap().expect("the server had applied it");
    replies.add_permits(10_000);
    let found = swap(&store, lost).await.unwrap();
    assert!(matches!(found, SwapReply::Stale(Some(found)) if found == taken));
}
