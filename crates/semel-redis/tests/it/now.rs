//! The time of an answer is not before anything in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use semel::store::Store;
use semel_redis::RedisStore;
use test_services::{AppendFsync, Redis};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::tries::{LONG, again, put, write};

/// Passes everything on; armed, it holds back all but the first of several commands until it is released.
#[derive(Clone)]
struct SteppingProxy {
    port: u16,
    is_armed: Arc<AtomicBool>,
    /// A permit for every reply that came back.
    replied: Arc<Semaphore>,
    released: Arc<Semaphore>,
}

impl SteppingProxy {
    async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let none = || Arc::new(Semaphore::new(0));
        let proxy = Self { port, is_armed: Arc::default(), replied: none(), released: none() };
        let passing = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                tokio::spawn(passing.clone().pass(client, server));
            }
        });
        proxy
    }

    async fn pass(self, client: TcpStream, server: TcpStream) {
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let replied = Arc::clone(&self.replied);
        let returning = tokio::spawn(async move {
            let mut bytes = vec![0; 64 * 1_024];
            while let Ok(read @ 1..) = from_server.read(&mut bytes).await {
                replied.add_permits(1);
                if to_client.write_all(&bytes[..read]).await.is_err() {
                    break;
                }
            }
        });
        let mut bytes = vec![0; 64 * 1_024];
        while let Ok(read @ 1..) = from_client.read(&mut bytes).await {
            let first = first_command(&bytes[..read]);
            if first < read && self.is_armed.swap(false, Ordering::AcqRel) {
                to_server.write_all(&bytes[..first]).await.unwrap();
                self.released.acquire().await.unwrap().forget();
                to_server.write_all(&bytes[first..read]).await.unwrap();
            } else if to_server.write_all(&bytes[..read]).await.is_err() {
                break;
            }
        }
        returning.abort();
    }
}

/// How many bytes the first command takes.
fn first_command(bytes: &[u8]) -> usize {
    let line_end = |from: usize| bytes[from..].windows(2).position(|two| two == b"\r\n").unwrap() + from + 2;
    let number = |from: usize, end: usize| {
        std::str::from_utf8(&bytes[from + 1..end - 2]).unwrap().parse::<usize>().unwrap()
    };
    let mut at = line_end(0);
    for _ in 0..number(0, at) {
        let end = line_end(at);
        at = end + number(at, end) + 2;
    }
    at
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_another_write_overtakes_is_not_timed_before_what_it_found() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let direct = RedisStore::connect(&server.url()).await.unwrap();
    let proxy = SteppingProxy::start(server.port()).await;
    let store =
        RedisStore::connect(&format!("redis://127.0.0.1:{}?connections=1", proxy.port)).await.unwrap();
    let record = put(&store, LONG).await;
    proxy.replied.forget_permits(usize::MAX);
    proxy.is_armed.store(true, Ordering::Release);
    let id = record.key.id();
    let loading = tokio::spawn(async move { store.load(vec![id]).await.unwrap() });
    // The server has answered the first of the commands, and has not seen the others.
    proxy.replied.acquire().await.unwrap().forget();
    write(&direct, again(&record, LONG)).await;
    proxy.released.add_permits(1);
    let answer = loading.await.unwrap();
    let now = answer.now;
    let found = answer.record().unwrap().unwrap();
    assert!(now >= found.changed_at, "{now:?} is before {:?}", found.changed_at);
}
