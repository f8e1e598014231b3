//! Redis: kills, replicas, a sentinel, a cluster.

use test_services::{AppendFsync, Redis, RedisCluster, RedisWithSentinel, Sentinel};

#[test]
fn a_redis_answers_with_the_settings_that_were_asked_for() {
    for (fsync, word) in
        [(AppendFsync::Always, "always"), (AppendFsync::EverySecond, "everysec"), (AppendFsync::Never, "no")]
    {
        let server = Redis::start(fsync).unwrap();
        assert_eq!(server.ask(&["CONFIG", "GET", "appendfsync"]).unwrap(), ["appendfsync", word]);
        let policy = server.ask(&["CONFIG", "GET", "maxmemory-policy"]).unwrap();
        assert_eq!(policy, ["maxmemory-policy", "noeviction"]);
    }
    assert!(Redis::start_with(&[("no-such-setting", "yes")]).unwrap_err().to_string().contains("log"));
}

#[test]
fn what_redis_acknowledged_survives_a_kill() {
    let mut server = Redis::start(AppendFsync::Always).unwrap();
    assert_eq!(server.ask(&["SET", "a", "1"]).unwrap(), ["OK"]);
    server.kill().unwrap();
    assert!(server.ask(&["GET", "a"]).is_err(), "it still answers");
    server.resume().unwrap();
    assert_eq!(server.ask(&["GET", "a"]).unwrap(), ["1"]);
    // Control: without its file it comes back empty.
    let mut forgetful = Redis::start_with(&[("appendonly", "no")]).unwrap();
    forgetful.ask(&["SET", "a", "1"]).unwrap();
    forgetful.kill().unwrap();
    forgetful.resume().unwrap();
    assert!(forgetful.ask(&["GET", "a"]).unwrap().is_empty());
}

#[test]
fn a_frozen_redis_answers_nothing_until_it_goes_on() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    server.freeze().unwrap();
    assert!(server.ask(&["PING"]).is_err());
    server.thaw().unwrap();
    assert_eq!(server.ask(&["PING"]).unwrap(), ["PONG"]);
}

#[test]
fn a_replica_of_redis_can_take_over() {
    let mut master = Redis::start(AppendFsync::Always).unwrap();
    let mut replica = master.replica().unwrap();
    master.ask(&["SET", "a", "1"]).unwrap();
    // Polled until the runner ends the test: `WAIT` speaks of its own connection's writes only.
    while replica.ask(&["GET", "a"]).unwrap() != ["1"] {}
    assert!(replica.ask(&["SET", "a", "2"]).is_err(), "a replica took a write");
    master.kill().unwrap();
    replica.promote().unwrap();
    assert_eq!(replica.ask(&["GET", "a"]).unwrap(), ["1"]);
    replica.ask(&["SET", "a", "2"]).unwrap();
}

#[test]
fn a_sentinel_promotes_the_replica_of_a_dead_master() {
    let mut master = Redis::start(AppendFsync::Always).unwrap();
    let replica = master.replica().unwrap();
    let sentinel = Sentinel::start(&master).unwrap();
    assert_eq!(sentinel.master().unwrap(), master.port());
    master.kill().unwrap();
    assert_eq!(sentinel.until_master_is_not(master.port()).unwrap(), replica.port());
}

/// Asks the master behind a link as a client would.
fn is_reached(port: u16) -> bool {
    use std::io::{Read, Write};
    let mut client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
    client.write_all(b"PING\r\n").unwrap();
    client.read(&mut [0; 16]).is_ok_and(|bytes| bytes > 0)
}

#[test]
fn a_sentinel_replaces_a_master_that_it_cannot_reach_whether_or_not_clients_can() {
    let redis = RedisWithSentinel::start(&[]).unwrap();
    let first = redis.freeze_master().unwrap();
    assert!(!is_reached(first));
    let second = redis.until_master_is_not(first).unwrap();
    assert!(is_reached(second));
    redis.mend();
    redis.until_replicated().unwrap();
    assert_eq!(redis.isolate_master().unwrap(), second);
    assert!(is_reached(second));
    let third = redis.until_master_is_not(second).unwrap();
    assert!(is_reached(third));
    // The old master does not know yet that it was replaced.
    assert_eq!(redis.server(second).unwrap().ask(&["SET", "a", "1"]).unwrap(), ["OK"]);
    redis.mend();
    redis.until_replicated().unwrap();
    assert!(redis.master().unwrap().ask(&["GET", "a"]).unwrap().is_empty());
}

#[test]
fn a_cluster_survives_the_death_of_a_master() {
    let mut cluster = RedisCluster::start(AppendFsync::EverySecond).unwrap();
    assert!(cluster.ports().iter().all(|port| *port < 55_536));
    for n in 0..2 {
        let master = cluster.master(n).unwrap();
        cluster.kill_master(n).unwrap();
        cluster.until_healthy().unwrap();
        assert_ne!(cluster.master(n).unwrap(), master);
        cluster.resume(n).unwrap();
        assert_ne!(cluster.master(n).unwrap(), master, "the old master follows the new one");
    }
}

#[test]
fn a_cluster_without_a_master_is_not_healthy() {
    let mut cluster = RedisCluster::start(AppendFsync::EverySecond).unwrap();
    cluster.kill_master(1).unwrap();
    cluster.until_healthy().unwrap();
    cluster.kill_master(1).unwrap();
    assert!(!cluster.is_healthy());
}
