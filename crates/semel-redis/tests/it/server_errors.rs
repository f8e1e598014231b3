//! What a server answers while it cannot serve, each made to happen: what kind of error that is, and that it passes.

use std::time::Duration;

use semel::ErrorKind;
use semel::store::{Store, SwapReply};
use semel_redis::RedisStore;
use semel_testkit::sample;
use test_services::{AppendFsync, Redis, RedisCluster};

use crate::tries::{LONG, first, load, put, swap, until};

async fn store_on(server: &Redis) -> RedisStore {
    let store = RedisStore::connect(&server.url()).await.unwrap();
    put(&store, LONG).await;
    store
}

/// A swap that the server refuses with this code, and that did not happen.
async fn refuses(store: &RedisStore, code: &str) {
    let key = sample::key("refused").unwrap();
    let error = swap(store, first(&key, LONG)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains(code), "{error}");
    assert!(store.ready().await.is_err(), "{code}");
}

async fn serves(store: &RedisStore) {
    until("it serves again", || async {
        let swapped = swap(store, first(&sample::key("again").unwrap(), LONG)).await;
        (matches!(swapped, Ok(SwapReply::Swapped(_))) && store.ready().await.is_ok()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn noreplicas_is_unavailable_until_there_are_some() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let store = store_on(&server).await;
    server.ask(&["CONFIG", "SET", "min-replicas-to-write", "1"]).unwrap();
    refuses(&store, "NOREPLICAS").await;
    let _replica = server.replica().unwrap();
    serves(&store).await;
}

#[tokio::test]
async fn readonly_is_unavailable_until_it_is_a_master_again() {
    let (server, other) =
        (Redis::start(AppendFsync::Always).unwrap(), Redis::start(AppendFsync::Always).unwrap());
    let store = store_on(&server).await;
    server.ask(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]).unwrap();
    refuses(&store, "READONLY").await;
    server.ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    serves(&store).await;
}

#[tokio::test]
async fn masterdown_is_unavailable_until_it_is_a_master_again() {
    let server = Redis::start_with(&[("replica-serve-stale-data", "no")]).unwrap();
    let store = store_on(&server).await;
    server.ask(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    refuses(&store, "MASTERDOWN").await;
    server.ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    serves(&store).await;
}

#[tokio::test]
async fn loading_is_unavailable_until_everything_is_read() {
    let server = Redis::start_with(&[("enable-debug-command", "yes"), ("appendonly", "no")]).unwrap();
    let store = store_on(&server).await;
    for _ in 0..30 {
        put(&store, LONG).await;
    }
    server.ask(&["CONFIG", "SET", "loading-process-events-interval-bytes", "1024"]).unwrap();
    // Microseconds for each key.
    server.ask(&["CONFIG", "SET", "key-load-delay", "20000"]).unwrap();
    let port = server.port();
    let reload = std::thread::spawn(move || {
        let reloaded = server.ask(&["DEBUG", "RELOAD"]);
        (server, reloaded)
    });
    let direct = redis::Client::open(format!("redis://127.0.0.1:{port}")).unwrap();
    let mut connection = direct.get_multiplexed_async_connection().await.unwrap();
    until("it loads", || {
        let mut connection = connection.clone();
        async move {
            let info: redis::RedisResult<String> =
                redis::cmd("INFO").arg("persistence").query_async(&mut connection).await;
            info.is_ok_and(|info| info.contains("loading:1")).then_some(())
        }
    })
    .await;
    refuses(&store, "LOADING").await;
    let () = redis::cmd("CONFIG")
        .arg("SET")
        .arg("key-load-delay")
        .arg("0")
        .query_async(&mut connection)
        .await
        .unwrap_or(());
    let (_server, _) = reload.join().unwrap();
    serves(&store).await;
}

#[tokio::test]
async fn busy_is_unavailable_until_the_script_ends() {
    let server = Redis::start_with(&[("busy-reply-threshold", "10")]).unwrap();
    let store = store_on(&server).await;
    let port = server.port();
    let script = std::thread::spawn(move || {
        let ended = server.ask(&["EVAL", "while true do end", "0"]);
        (server, ended)
    });
    let direct = redis::Client::open(format!("redis://127.0.0.1:{port}")).unwrap();
    let mut connection = direct.get_multiplexed_async_connection().await.unwrap();
    until("a script runs", || {
        let mut connection = connection.clone();
        async move {
            let pong: redis::RedisResult<String> = redis::cmd("PING").query_async(&mut connection).await;
            pong.is_err_and(|error| error.code() == Some("BUSY")).then_some(())
        }
    })
    .await;
    refuses(&store, "BUSY").await;
    let () = redis::cmd("SCRIPT").arg("KILL").query_async(&mut connection).await.unwrap();
    let (_server, ended) = script.join().unwrap();
    assert!(ended.is_err());
    serves(&store).await;
}

#[tokio::test]
async fn misconf_is_unavailable_until_a_snapshot_succeeds() {
    let server = Redis::start_with(&[("save", "3600 1"), ("appendonly", "no")]).unwrap();
    let store = store_on(&server).await;
    // A snapshot of this name cannot be written.
    std::fs::create_dir(server.folder().join("dump.rdb")).unwrap();
    std::fs::write(server.folder().join("dump.rdb").join("full"), "").unwrap();
    server.ask(&["BGSAVE"]).unwrap();
    until("the snapshot fails", || async {
        let info = server.ask(&["INFO", "persistence"]).unwrap().concat();
        info.contains("rdb_last_bgsave_status:err").then_some(())
    })
    .await;
    refuses(&store, "MISCONF").await;
    server.ask(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]).unwrap();
    serves(&store).await;
}

#[tokio::test]
async fn clusterdown_is_unavailable_until_all_slots_have_a_master() {
    let cluster = RedisCluster::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&cluster.url()).await.unwrap();
    put(&store, LONG).await;
    let port = cluster.master(0).unwrap();
    until("no node knows a master of the first slot", || async {
        let ports = [port].into_iter().chain(cluster.ports());
        ports.for_each(|port| drop(cluster.ask(port, &["CLUSTER", "DELSLOTS", "0"])));
        let is_down =
            |port| cluster.ask(port, &["CLUSTER", "INFO"]).unwrap().concat().contains("cluster_state:fail");
        cluster.ports().into_iter().all(is_down).then_some(())
    })
    .await;
    refuses(&store, "CLUSTERDOWN").await;
    cluster.ask(port, &["CLUSTER", "ADDSLOTS", "0"]).unwrap();
    serves(&store).await;
}

#[tokio::test]
async fn a_server_that_hangs_is_unknown_after_the_time_for_a_reply_and_the_engine_does_not_ask_again() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let within = Duration::from_millis(200);
    let store = RedisStore::builder(&server.url()).reply_within(within).connect().await.unwrap();
    put(&store, LONG).await;
    server.freeze().unwrap();
    let error = swap(&store, first(&sample::key("hangs").unwrap(), LONG)).await.unwrap_err();
    server.thaw().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error:?}");
    assert!(error.is_overdue(), "{error:?}");
    until("it serves again", || async { store.load(Vec::new()).await.ok() }).await;
    assert!(load(&store, &sample::key("other").unwrap()).await.unwrap().is_none());
}
