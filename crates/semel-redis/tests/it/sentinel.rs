//! A master behind sentinels, and the one that is promoted when it is gone, frozen, cut off or deposed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use semel::{ErrorKind, Key};
use semel_redis::{ACL_RULES, RedisStore};
use semel_testkit::sample;
use test_services::{AppendFsync, Redis, Sentinel};
use tokio::time::Instant;

use crate::access::allow;
use crate::fake_sentinel::{Announcing, FakeSentinel};
use crate::tries::{LONG, first, load, put, swap, until};

/// A master that no sentinel can make a replica: deposed, it goes on as if nothing had happened.
const STUBBORN: (&str, &str) = ("user", "default on nopass ~* &* +@all -slaveof -replicaof");

fn holds(server: &Redis, key: &Key) -> bool {
    let id = key.id().to_string();
    server.ask(&["EXISTS", &format!("semel:{{{}}}:r:{id}", &id[..3])]).unwrap() == ["1"]
}

/// The connections that sent a script to this server; `None` while it cuts all connections, as a sentinel has it do.
fn connections(server: &Redis) -> Option<usize> {
    Some(server.ask(&["CLIENT", "LIST"]).ok()?.concat().matches("cmd=evalsha").count())
}

/// How many keys it has.
fn size(server: &Redis) -> Option<u64> {
    server.ask(&["DBSIZE"]).ok()?[0].parse().ok()
}

fn until_replica_has_all(master: &Redis, replica: &Redis) -> impl Future<Output = ()> {
    until("the replica has everything", || async { (size(replica)? == size(master)?).then_some(()) })
}

/// Has the replica promoted, although the master answers.
async fn force_failover(sentinel: &Sentinel) {
    until("the sentinel finds the replica good", || async {
        sentinel.ask(&["SENTINEL", "FAILOVER", Sentinel::MASTER]).ok()
    })
    .await;
}

#[tokio::test]
async fn a_failover_is_followed_to_the_new_master() {
    let mut master = Redis::start(AppendFsync::Always).unwrap();
    let replica = master.replica().unwrap();
    let sentinel = Sentinel::start(&master).unwrap();
    let store = RedisStore::connect(&sentinel.url()).await.unwrap();
    let record = put(&store, LONG).await;
    let copy = RedisStore::connect(&sentinel.url()).await.unwrap();
    // What has not reached the replica is lost with the master.
    until_replica_has_all(&master, &replica).await;
    master.kill().unwrap();
    let promoted = sentinel.until_master_is_not(master.port()).unwrap();
    assert_eq!(promoted, replica.port());
    let key = sample::key("after").unwrap();
    let after = until("the new master takes writes", || async {
        swap(&store, first(&key, LONG)).await.ok().map(drop)
    });
    after.await;
    assert_eq!(load(&store, &record.key).await.unwrap().as_ref(), Some(&record));
    // A store that asked for nothing meanwhile finds the new master as well.
    until("another store finds it", || async { load(&copy, &key).await.ok().flatten() }).await;
}

#[tokio::test]
async fn a_master_that_no_sentinel_knows_is_named() {
    let master = Redis::start(AppendFsync::Always).unwrap();
    let _replica = master.replica().unwrap();
    let sentinel = Sentinel::start(&master).unwrap();
    let url = format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/other", sentinel.port());
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("`other`"), "{error}");
}

/// Writes keys one after the other, and hands back those that were acknowledged, with the moment of each.
fn write_until(store: RedisStore, stop: Arc<AtomicBool>) -> tokio::task::JoinHandle<Vec<(Key, Instant)>> {
    tokio::spawn(async move {
        let mut acknowledged = Vec::new();
        while !stop.load(Ordering::Acquire) {
            let key = sample::key("load").unwrap();
            if swap(&store, first(&key, LONG)).await.is_ok() {
                acknowledged.push((key, Instant::now()));
            }
        }
        acknowledged
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposed_master_that_still_takes_writes_is_left_when_the_sentinels_switch() {
    let master = Redis::start_with(&[STUBBORN]).unwrap();
    let replica = master.replica().unwrap();
    let sentinel = Sentinel::start(&master).unwrap();
    let store = RedisStore::connect(&sentinel.url()).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4).map(|_| write_until(store.clone(), Arc::clone(&stop))).collect();
    until("the master is used", || async { connections(&master).filter(|count| *count > 0) }).await;
    force_failover(&sentinel).await;
    assert_eq!(sentinel.until_master_is_not(master.port()).unwrap(), replica.port());
    let switched_at = Instant::now();
    until("the deposed master has no connection", || async {
        connections(&master).filter(|count| *count == 0)
    })
    .await;
    let left_at = Instant::now();
    until("the new master is used", || async { connections(&replica).filter(|count| *count > 0) }).await;
    stop.store(true, Ordering::Release);
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    // The sentinels are asked every second; one more for a busy machine.
    assert!(left_at - switched_at < Duration::from_secs(2), "it took {:?}", left_at - switched_at);
    let later: Vec<_> = acknowledged.iter().filter(|(_, at)| *at > left_at).collect();
    let lost = later.iter().filter(|(key, _)| !holds(&replica, key)).count();
    assert_eq!(lost, 0, "of {} acknowledged after the deposed master was left", later.len());
    // Control: it would have gone on.
    let stubborn = RedisStore::connect(&master.url()).await.unwrap();
    put(&stubborn, LONG).await;
}

/// Cuts a master off from its replica and its sentinel, which are the default user. Other users still reach it.
fn cut_off(master: &Redis) {
    let denied =
        ["-ping", "-info", "-publish", "-psync", "-sync", "-replconf", "-slaveof", "-replicaof", "-hello"];
    let words = ["ACL", "SETUSER", "default"].into_iter().chain(denied).collect::<Vec<_>>();
    master.ask(&words).unwrap();
    master.ask(&["CLIENT", "KILL", "TYPE", "replica"]).unwrap();
}

/// Writes while the master is cut off: when the new one served, how many keys were acknowledged since the cut, how many of those
/// are lost, and when the last of them was acknowledged.
async fn partition(settings: &[(&str, &str)]) -> (Duration, usize, usize, Duration) {
    let master = Redis::start_with(settings).unwrap();
    let replica = master.replica().unwrap();
    for server in [&master, &replica] {
        allow(server, "semel", ACL_RULES);
    }
    let sentinel = Sentinel::start(&master).unwrap();
    let url = sentinel.url().replace("://", "://semel:s3cret@");
    let store = RedisStore::connect(&url).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4).map(|_| write_until(store.clone(), Arc::clone(&stop))).collect();
    until("the replica has some", || async { size(&replica).filter(|size| *size > 0) }).await;
    cut_off(&master);
    let cut_at = Instant::now();
    until("the new master is used", || async { connections(&replica).filter(|count| *count > 0) }).await;
    let served = cut_at.elapsed();
    let enough = until("it answers", || async { size(&replica) }).await + 200;
    until("the new master takes more", || async { size(&replica).filter(|size| *size > enough) }).await;
    stop.store(true, Ordering::Release);
    let (mut acknowledged, mut lost, mut latest) = (0, 0, Duration::ZERO);
    for writer in writers {
        for (key, at) in writer.await.unwrap().into_iter().filter(|(_, at)| *at > cut_at) {
            acknowledged += 1;
            if !holds(&replica, &key) {
                lost += 1;
                latest = latest.max(at - cut_at);
            }
        }
    }
    println!(
        "{settings:?}: served after {served:?}; {lost} of {acknowledged} lost, the last acknowledged after {latest:?}"
    );
    (served, acknowledged, lost, latest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_is_cut_off_loses_what_it_acknowledged_before_the_switch_and_nothing_later() {
    let (served, acknowledged, lost, latest) = partition(&[]).await;
    assert!(served < Duration::from_secs(10), "{served:?}");
    // The control of the test below: a master that needs no replica goes on until the switch.
    assert!(lost > 0 && lost < acknowledged, "{lost} of {acknowledged}");
    assert!(latest < served + Duration::from_secs(1), "{latest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_needs_a_replica_stops_soon_after_it_is_cut_off_and_the_new_one_serves() {
    let settings = [("min-replicas-to-write", "1"), ("min-replicas-max-lag", "1")];
    let (served, acknowledged, lost, latest) = partition(&settings).await;
    assert!(served < Duration::from_secs(10), "{served:?}");
    // Its replicas were disconnected, which it notices at once; one that is merely silent it notices after a second or two.
    assert!(latest < Duration::from_secs(2), "{lost} of {acknowledged}, the last after {latest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_without_good_replicas_is_left_for_the_one_that_was_promoted() {
    let settings = [STUBBORN, ("min-replicas-to-write", "1"), ("min-replicas-max-lag", "1")];
    let master = Redis::start_with(&settings).unwrap();
    let replica = master.replica().unwrap();
    let sentinel = Sentinel::start(&master).unwrap();
    let store = RedisStore::connect(&sentinel.url()).await.unwrap();
    // A replica that has just been made is not always a good one yet.
    let key = sample::key("before").unwrap();
    until("the master has a good replica", || async { swap(&store, first(&key, LONG)).await.ok() }).await;
    force_failover(&sentinel).await;
    sentinel.until_master_is_not(master.port()).unwrap();
    let key = sample::key("after").unwrap();
    until("the new master takes writes", || async { swap(&store, first(&key, LONG)).await.ok() }).await;
    assert!(holds(&replica, &key) && !holds(&master, &key));
}

#[tokio::test]
async fn noreplicas_asks_the_sentinels_at_once() {
    let settings = [("min-replicas-to-write", "1"), ("min-replicas-max-lag", "1")];
    let (refusing, other) =
        (Redis::start(AppendFsync::Always).unwrap(), Redis::start(AppendFsync::Always).unwrap());
    let sentinel = FakeSentinel::start(refusing.port(), Announcing::No).await;
    let store = RedisStore::connect(&FakeSentinel::url(&[&sentinel])).await.unwrap();
    put(&store, LONG).await;
    for (name, value) in settings {
        refusing.ask(&["CONFIG", "SET", name, value]).unwrap();
    }
    let key = sample::key("refused").unwrap();
    let error = swap(&store, first(&key, LONG)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("NOREPLICAS") && !holds(&refusing, &key), "{error}");
    sentinel.name(other.port(), 2);
    // At the first try: no second has passed in which the sentinel would have been asked anyway.
    swap(&store, first(&key, LONG)).await.unwrap();
    assert!(holds(&other, &key));
}

#[tokio::test]
async fn readonly_asks_the_sentinels_at_once() {
    let (deposed, other) =
        (Redis::start(AppendFsync::EverySecond).unwrap(), Redis::start(AppendFsync::EverySecond).unwrap());
    let sentinel = FakeSentinel::start(deposed.port(), Announcing::No).await;
    let store = RedisStore::connect(&FakeSentinel::url(&[&sentinel])).await.unwrap();
    put(&store, LONG).await;
    deposed.ask(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]).unwrap();
    let error = swap(&store, first(&sample::key("refused").unwrap(), LONG)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("READONLY"), "{error}");
    sentinel.name(other.port(), 2);
    let key = sample::key("after").unwrap();
    swap(&store, first(&key, LONG)).await.unwrap();
    assert!(holds(&other, &key));
}

#[tokio::test]
async fn an_announcement_is_followed_at_once_and_without_one_the_sentinels_are_asked_every_second() {
    for announcing in [Announcing::Yes, Announcing::No] {
        let (old, new) = (
            Redis::start(AppendFsync::EverySecond).unwrap(),
            Redis::start(AppendFsync::EverySecond).unwrap(),
        );
        let sentinel = FakeSentinel::start(old.port(), announcing).await;
        let store = RedisStore::connect(&FakeSentinel::url(&[&sentinel])).await.unwrap();
        put(&store, LONG).await;
        let wanted = usize::from(announcing == Announcing::Yes);
        until("it is listened to", || async { (sentinel.subscribers() == wanted).then_some(()) }).await;
        let mut fastest = Duration::MAX;
        // The best of some: a poll may come at any moment, and another process may hold the machine up.
        for (epoch, server) in [&new, &old, &new, &old].into_iter().enumerate() {
            sentinel.name(server.port(), 2 + u64::try_from(epoch).unwrap());
            let named_at = Instant::now();
            sentinel.announce();
            let is_there =
                || async { format!("{store:?}").contains(&server.port().to_string()).then_some(()) };
            until("the store follows", is_there).await;
            fastest = fastest.min(named_at.elapsed());
        }
        if announcing == Announcing::Yes {
            assert!(fastest < Duration::from_millis(500), "{fastest:?}");
        }
        assert!(fastest < Duration::from_millis(1_500), "{fastest:?}");
    }
}

#[tokio::test]
async fn a_sentinel_with_an_older_configuration_is_not_followed() {
    let (old, new) =
        (Redis::start(AppendFsync::EverySecond).unwrap(), Redis::start(AppendFsync::EverySecond).unwrap());
    let stale = FakeSentinel::start(old.port(), Announcing::Yes).await;
    let fresh = FakeSentinel::start(new.port(), Announcing::Yes).await;
    fresh.name(new.port(), 7);
    let store = RedisStore::connect(&FakeSentinel::url(&[&stale, &fresh])).await.unwrap();
    let is_at = |server: &Redis| format!("{store:?}").contains(&server.port().to_string());
    assert!(is_at(&new), "{store:?}");
    let asked = stale.asked();
    // The one that knows better is gone.
    fresh.fall_silent();
    stale.announce();
    until("the older one was asked", || async { (stale.asked() > asked + 2).then_some(()) }).await;
    assert!(is_at(&new), "{store:?}");
    // All of them have an older configuration: they were reset.
    stale.name(old.port(), 2);
    fresh.speak_again();
    fresh.name(old.port(), 2);
    until("the reset is followed", || async { is_at(&old).then_some(()) }).await;
}

/// Whether a connection of this server has bytes that it did not read: the fields of `/proc/net/tcp` are in hex.
fn has_unread_bytes(server: &Redis) -> bool {
    let port = format!(":{:04X}", server.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table
        .lines()
        .filter_map(|line| line.split_whitespace().collect::<Vec<_>>().get(1..5).map(<[_]>::to_vec))
        .any(|fields| fields[0].ends_with(&port) && !fields[3].ends_with(":00000000"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_in_flight_to_a_deposed_master_are_unknown_and_do_not_wait_for_it() {
    let (old, new) =
        (Redis::start(AppendFsync::EverySecond).unwrap(), Redis::start(AppendFsync::EverySecond).unwrap());
    let sentinel = FakeSentinel::start(old.port(), Announcing::Yes).await;
    let url = format!("{}?reply_within_ms=60000", FakeSentinel::url(&[&sentinel]));
    let store = RedisStore::connect(&url).await.unwrap();
    put(&store, LONG).await;
    old.freeze().unwrap();
    let asked_at = Instant::now();
    let send = || {
        let store = store.clone();
        tokio::spawn(async move { swap(&store, first(&sample::key("stuck").unwrap(), LONG)).await })
    };
    let waiting: Vec<_> = (0..8).map(|_| send()).collect();
    until("the commands are sent", || async { has_unread_bytes(&old).then_some(()) }).await;
    sentinel.name(new.port(), 2);
    sentinel.announce();
    let mut unknown = 0;
    for waiting in waiting {
        // One that was sent after the switch is done by the new master.
        if let Err(error) = waiting.await.unwrap() {
            assert_eq!(error.kind(), ErrorKind::Unknown, "{error:?}");
            unknown += 1;
        }
    }
    assert!(
        unknown > 0 && asked_at.elapsed() < Duration::from_secs(20),
        "{unknown}, {:?}",
        asked_at.elapsed()
    );
    put(&store, LONG).await;
    old.thaw().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_master_is_replaced_and_nothing_acknowledged_after_the_switch_is_lost() {
    let master = Redis::start_with(&[STUBBORN]).unwrap();
    let replica = master.replica().unwrap();
    let sentinel = Sentinel::start(&master).unwrap();
    let store = RedisStore::connect(&sentinel.url()).await.unwrap();
    let before = put(&store, LONG).await;
    until_replica_has_all(&master, &replica).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4).map(|_| write_until(store.clone(), Arc::clone(&stop))).collect();
    master.freeze().unwrap();
    let frozen_at = Instant::now();
    sentinel.until_master_is_not(master.port()).unwrap();
    let switched_at = Instant::now();
    until("the new master is used", || async { connections(&replica).filter(|count| *count > 0) }).await;
    let served_at = Instant::now();
    master.thaw().unwrap();
    until("the new master has some", || async { size(&replica).filter(|size| *size > 200) }).await;
    stop.store(true, Ordering::Release);
    let mut lost = 0;
    for writer in writers {
        let acknowledged = writer.await.unwrap();
        let after = acknowledged.iter().filter(|(_, at)| *at > switched_at);
        lost += after.filter(|(key, _)| !holds(&replica, key)).count();
    }
    assert_eq!(lost, 0);
    assert_eq!(load(&store, &before.key).await.unwrap().as_ref(), Some(&before));
    assert!(served_at - frozen_at < Duration::from_secs(10), "{:?}", served_at - frozen_at);
}

#[test]
fn failovers_are_followed_after_the_end_of_the_runtime_that_connected() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (fake, first_runtime) = (runtime(), runtime());
    let (old, new) =
        (Redis::start(AppendFsync::EverySecond).unwrap(), Redis::start(AppendFsync::EverySecond).unwrap());
    let sentinel = fake.block_on(FakeSentinel::start(old.port(), Announcing::Yes));
    let store = first_runtime.block_on(async {
        let store = RedisStore::connect(&FakeSentinel::url(&[&sentinel])).await.unwrap();
        put(&store, LONG).await;
        until("it is listened to", || async { (sentinel.subscribers() == 1).then_some(()) }).await;
        store
    });
    drop(first_runtime);
    let second = runtime();
    second.block_on(async {
        // The connections of the first runtime are gone; the first command finds that out, and starts all anew.
        until("the store is used again", || async {
            swap(&store, first(&sample::key("again").unwrap(), LONG)).await.ok()
        })
        .await;
        sentinel.name(new.port(), 2);
        sentinel.announce();
        until("the store follows", || async {
            format!("{store:?}").contains(&new.port().to_string()).then_some(())
        })
        .await;
    });
}

#[tokio::test]
async fn nothing_is_listened_to_after_the_last_clone_of_a_store() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let sentinel = FakeSentinel::start(server.port(), Announcing::Yes).await;
    let store = RedisStore::connect(&FakeSentinel::url(&[&sentinel])).await.unwrap();
    let clone = store.clone();
    put(&store, LONG).await;
    until("it is listened to", || async { (sentinel.subscribers() == 1).then_some(()) }).await;
    drop(store);
    put(&clone, LONG).await;
    assert_eq!(sentinel.subscribers(), 1);
    drop(clone);
    until("it is not any more", || async { (sentinel.subscribers() == 0).then_some(()) }).await;
}
