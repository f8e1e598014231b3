//! A cluster whose masters change, and whose slots move.

use redis::aio::MultiplexedConnection;
use semel::Key;
use semel::store::{Store, SwapReply};
use semel_redis::{RedisStore, Verdict};
use semel_testkit::sample;
use test_services::{AppendFsync, Redis, RedisCluster};

use crate::tries::{LONG, again, first, load, swap, until, write};

fn keys(count: usize) -> Vec<Key> {
    (0..count).map(|_| sample::key("spread").unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_over_all_masters_is_answered_in_its_order() {
    let cluster = RedisCluster::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&cluster.url()).await.unwrap();
    let keys = keys(300);
    let replies = store.swap(keys.iter().map(|key| first(key, LONG)).collect()).await.unwrap().value;
    for (key, reply) in keys.iter().zip(&replies) {
        assert!(matches!(reply, SwapReply::Swapped(record) if record.key == *key));
    }
    let loaded = store.load(keys.iter().map(Key::id).collect()).await.unwrap().value;
    assert!(
        loaded.iter().zip(&keys).all(|(record, key)| matches!(record, Ok(Some(found)) if found.key == *key))
    );
    let findings = store.check().await.unwrap();
    assert!(findings.iter().all(|finding| finding.verdict == Verdict::Kept), "{findings:?}");
    assert_eq!(findings.len(), 3 * 5 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_is_followed_for_every_key() {
    let mut cluster = RedisCluster::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&cluster.url()).await.unwrap();
    let keys = keys(60);
    for key in &keys {
        write(&store, first(key, LONG)).await;
    }
    cluster.kill_master(0).unwrap();
    cluster.until_healthy().unwrap();
    for key in &keys {
        // A record whose write had not reached the replica yet may be gone; what is there must be writable.
        until("every key is writable again", || async {
            let swapped = match load(&store, key).await.ok()? {
                Some(record) => swap(&store, again(&record, LONG)).await,
                None => swap(&store, first(key, LONG)).await,
            };
            matches!(swapped, Ok(SwapReply::Swapped(_))).then_some(())
        })
        .await;
    }
}

async fn connect(port: u16) -> MultiplexedConnection {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

async fn send(connection: &mut MultiplexedConnection, words: &str) -> redis::Value {
    let mut words = words.split(' ');
    let mut cmd = redis::cmd(words.next().unwrap());
    words.for_each(|word| {
        cmd.arg(word);
    });
    cmd.query_async(connection).await.unwrap()
}

async fn text(connection: &mut MultiplexedConnection, words: &str) -> String {
    redis::from_redis_value(send(connection, words).await).unwrap()
}

/// The slot of a record, its master, and another.
async fn places(cluster: &RedisCluster, record: &str) -> (u16, u16, u16) {
    let masters = [0, 1, 2].map(|n| cluster.master(n).unwrap());
    let mut found = None;
    for port in masters {
        let mut server = connect(port).await;
        let slot = send(&mut server, &format!("CLUSTER KEYSLOT {record}")).await;
        let slot: u16 = redis::from_redis_value(slot).unwrap();
        let count = send(&mut server, &format!("CLUSTER COUNTKEYSINSLOT {slot}")).await;
        if count != redis::Value::Int(0) {
            found = Some((slot, port));
        }
    }
    let (slot, owner) = found.unwrap();
    (slot, owner, masters.into_iter().find(|port| *port != owner).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_takes_its_records_and_versions_along() {
    let cluster = RedisCluster::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&cluster.url()).await.unwrap();
    let key = sample::key("moves").unwrap();
    let record = write(&store, first(&key, LONG)).await;
    let hex = key.id().to_string();
    let (slot, from, to) = places(&cluster, &format!("semel:{{{}}}:r:{hex}", &hex[..3])).await;
    let (mut source, mut target) = (connect(from).await, connect(to).await);
    let (source_id, target_id) =
        (text(&mut source, "CLUSTER MYID").await, text(&mut target, "CLUSTER MYID").await);
    send(&mut target, &format!("CLUSTER SETSLOT {slot} IMPORTING {source_id}")).await;
    send(&mut source, &format!("CLUSTER SETSLOT {slot} MIGRATING {target_id}")).await;
    // The record alone has arrived, its counter has not: nothing may be written on either side.
    let mut names: Vec<String> =
        redis::from_redis_value(send(&mut source, &format!("CLUSTER GETKEYSINSLOT {slot} 100")).await)
            .unwrap();
    names.sort_by_key(|name| !name.contains(":r:"));
    assert_eq!(names.len(), 3, "{names:?}");
    send(&mut source, &format!("MIGRATE 127.0.0.1 {to} {} 0 5000", names[0])).await;
    let half_way = swap(&store, again(&record, LONG)).await.unwrap_err();
    assert_eq!(half_way.kind(), semel::ErrorKind::Unavailable, "{half_way:?}");
    for name in &names[1..] {
        send(&mut source, &format!("MIGRATE 127.0.0.1 {to} {name} 0 5000")).await;
    }
    // All have arrived, and the slot still belongs to the source: it answers ASK.
    let asked = write(&store, again(&record, LONG)).await;
    assert!(asked.version > record.version);
    for connection in [&mut target, &mut source] {
        send(connection, &format!("CLUSTER SETSLOT {slot} NODE {target_id}")).await;
    }
    // And now MOVED.
    let moved = write(&store, again(&asked, LONG)).await;
    assert!(moved.version > asked.version);
    assert_eq!(load(&store, &key).await.unwrap().as_ref(), Some(&moved));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_left_the_cluster_is_not_believed() {
    let cluster = RedisCluster::start(AppendFsync::EverySecond).unwrap();
    let replica =
        cluster.ports().into_iter().find(|port| (0..3).all(|n| cluster.master(n).unwrap() != *port));
    let replica = replica.unwrap();
    cluster.ask(replica, &["CLUSTER", "RESET"]).unwrap();
    let url = cluster.url().replace("://", &format!("://127.0.0.1:{replica},"));
    for _ in 0..20 {
        RedisStore::connect(&url).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_master_of_a_cluster_is_replaced_within_ten_seconds() {
    let cluster = RedisCluster::start(AppendFsync::EverySecond).unwrap();
    let url = format!("{}?reply_within_ms=1000", cluster.url());
    let store = RedisStore::connect(&url).await.unwrap();
    let keys = keys(30);
    for key in &keys {
        write(&store, first(key, LONG)).await;
    }
    let frozen = cluster.freeze_master(0).unwrap();
    let frozen_at = tokio::time::Instant::now();
    for _ in 0..30 {
        until("every key can be claimed", || async {
            swap(&store, first(&sample::key("after").unwrap(), LONG)).await.ok()
        })
        .await;
    }
    let took = frozen_at.elapsed();
    cluster.thaw(frozen).unwrap();
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
}

/// A cluster of one server, which knows of no other.
fn lonely_cluster() -> Redis {
    let server = Redis::start_with(&[("cluster-enabled", "yes")]).unwrap();
    server.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_refuses_is_not_asked_who_the_masters_are() {
    let servers = [lonely_cluster(), lonely_cluster()];
    for server in &servers {
        until("it serves", || async { server.ask(&["SET", "a", "1"]).ok() }).await;
    }
    let url = format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", servers[0].port(), servers[1].port());
    let store = RedisStore::connect(&url).await.unwrap();
    // As if each in turn was cut off from the others: it believes in its own map, and lacks its replicas.
    for turn in 0..10 {
        let is_used = |server: &Redis| format!("{store:?}").contains(&server.port().to_string());
        let used = servers.iter().find(|server| is_used(server)).unwrap();
        let other = servers.iter().find(|server| !is_used(server)).unwrap();
        other.ask(&["CONFIG", "SET", "min-replicas-to-write", "0"]).unwrap();
        used.ask(&["CONFIG", "SET", "min-replicas-to-write", "1"]).unwrap();
        let swapped = swap(&store, first(&sample::key("turn").unwrap(), LONG)).await;
        assert!(matches!(swapped, Ok(SwapReply::Swapped(_))), "{turn}: {swapped:?}");
        assert!(is_used(other));
    }
}
