//! PostgreSQL: kills, stops, standbys.

use test_services::{Postgres, Standby};

#[test]
fn a_server_answers_with_durable_settings() {
    let server = Postgres::start().unwrap();
    for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
        assert_eq!(server.ask(&format!("SHOW {setting}")).unwrap(), "on", "{setting}");
    }
    let where_it_is = server.ask("SELECT inet_server_addr() || ':' || inet_server_port()").unwrap();
    assert_eq!(server.url(), format!("postgres://semel@{}/semel", where_it_is.replace("/32", "")));
    let other = Postgres::start_with(&[("synchronous_commit", "off")]).unwrap();
    assert_eq!(other.ask("SHOW synchronous_commit").unwrap(), "off");
    assert!(server.ask("SELECT nonsense").is_err());
}

#[test]
fn what_was_written_survives_a_kill_and_every_kind_of_stop() {
    let mut server = Postgres::start().unwrap();
    server.ask("CREATE TABLE kept (number int)").unwrap();
    let ends: [fn(&mut Postgres) -> anyhow::Result<()>; 3] =
        [Postgres::kill, Postgres::stop_immediately, Postgres::stop];
    for (number, end) in ends.into_iter().enumerate() {
        server.ask(&format!("INSERT INTO kept VALUES ({number})")).unwrap();
        end(&mut server).unwrap();
        assert!(server.ask("SELECT 1").is_err(), "it still answers after end {number}");
        server.resume().unwrap();
        let kept = server.ask("SELECT string_agg(number::text, ',' ORDER BY number) FROM kept").unwrap();
        assert_eq!(kept, ["0", "0,1", "0,1,2"][number]);
    }
}

#[test]
fn a_synchronous_standby_takes_over_with_everything() {
    let mut primary = Postgres::start().unwrap();
    primary.ask("CREATE TABLE kept (number int)").unwrap();
    let mut standby = primary.standby(Standby::Synchronous).unwrap();
    assert!(standby.ask("INSERT INTO kept VALUES (0)").is_err(), "a standby took a write");
    primary.ask("INSERT INTO kept VALUES (1)").unwrap();
    primary.kill().unwrap();
    standby.promote().unwrap();
    standby.ask("INSERT INTO kept VALUES (2)").unwrap();
    assert_eq!(standby.ask("SELECT count(*) FROM kept").unwrap(), "2");
    // And it can be followed itself.
    let next = standby.standby(Standby::Asynchronous).unwrap();
    assert_eq!(next.ask("SELECT pg_is_in_recovery()").unwrap(), "t");
}

#[test]
fn without_its_synchronous_standby_a_primary_acknowledges_nothing() {
    const WAITING: &str = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let primary = Postgres::start().unwrap();
    primary.ask("CREATE TABLE kept (number int)").unwrap();
    // Without an asynchronous one it goes on.
    drop(primary.standby(Standby::Asynchronous).unwrap());
    primary.ask("INSERT INTO kept VALUES (1)").unwrap();
    drop(primary.standby(Standby::Synchronous).unwrap());
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| primary.ask("INSERT INTO kept VALUES (2)"));
        let is_waiting = (0..1_000).any(|_| {
            primary.ask(&format!("SELECT count(*) {WAITING}")).unwrap() == "1" || blocked.is_finished()
        });
        assert!(is_waiting && !blocked.is_finished(), "an insert did not wait for the standby that is gone");
        primary.ask(&format!("SELECT pg_terminate_backend(pid) {WAITING}")).unwrap();
        assert!(blocked.join().unwrap().is_err());
    });
}
