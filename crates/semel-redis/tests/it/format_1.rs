//! What semel 0.1 stored in Redis: read, served and gone on with.

use std::sync::Arc;

use semel::store::Store;
use semel_redis::RedisStore;
use semel_testkit::format_1::{read_all, read_what_was_served, serve};
use test_services::{AppendFsync, Redis};

const FORMAT_1: &str = include_str!("../fixtures/format-1.txt");

/// Restores every key of the fixture.
async fn restore(server: &Redis) {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    for line in FORMAT_1.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [key, millis, dump] = *words else { panic!("{line}") };
        let millis = millis.parse::<i64>().unwrap().max(0);
        let dump = dump.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).unwrap());
        let dump: Vec<u8> = dump.map(|two| u8::from_str_radix(two, 16).unwrap()).collect();
        let mut restore = redis::cmd("RESTORE");
        let () = restore.arg(key).arg(millis).arg(dump).query_async(&mut connection).await.unwrap();
    }
}

async fn connect(server: &Redis) -> Arc<dyn Store> {
    Arc::new(RedisStore::connect(&server.url()).await.unwrap())
}

#[tokio::test]
async fn what_0_1_stored_is_read_and_served() {
    let mut server = Redis::start(AppendFsync::Always).unwrap();
    restore(&server).await;
    let store = connect(&server).await;
    assert_eq!(read_all(&store).await, Ok(()));
    assert_eq!(serve(&store).await, Ok(()));
    drop(store);
    server.kill().unwrap();
    server.resume().unwrap();
    assert_eq!(read_what_was_served(&connect(&server).await).await, Ok(()));
}
