//! PostgreSQL: kills, stops, standbys, poolers.

use test_services::{Link, PgBouncer, PoolMode, Postgres, Standby};

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

#[test]
fn a_standby_behind_a_frozen_link_is_waited_for_and_can_be_promoted() {
    const WAITING: &str = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let primary = Postgres::start_in_memory(&[]).unwrap();
    primary.ask("CREATE TABLE kept (number int)").unwrap();
    let link = Link::to(primary.port()).unwrap();
    let mut standby = primary.standby_over(&link, Standby::Synchronous).unwrap();
    primary.ask("INSERT INTO kept VALUES (1)").unwrap();
    link.freeze();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| primary.ask("INSERT INTO kept VALUES (2)"));
        while primary.ask(&format!("SELECT count(*) {WAITING}")).unwrap() != "1" {
            assert!(!waiting.is_finished(), "an insert did not wait for a standby that cannot be reached");
        }
        // PostgreSQL takes a cancelled wait for a commit, with a warning.
        primary.ask(&format!("SELECT pg_cancel_backend(pid) {WAITING}")).unwrap();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(primary.ask("SELECT count(*) FROM kept").unwrap(), "2");
    standby.promote().unwrap();
    assert_eq!(standby.ask("SELECT count(*) FROM kept").unwrap(), "1");
}

/// Sets a setting by one session through this pooler, and reads it by another.
fn inherited(pooler: &PgBouncer, server: &Postgres) -> String {
    let psql = |statements: &[&str]| {
        let mut psql = std::process::Command::new("psql");
        psql.args(["--no-psqlrc", "--no-align", "--tuples-only", "--quiet"]).arg(pooler.url());
        for statement in statements {
            psql.args(["--command", statement]);
        }
        let output = psql.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    psql(&["SET work_mem = '123kB'", "SELECT 1"]);
    let clients =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = 'semel'";
    assert_eq!(server.ask(clients).unwrap(), "2", "the pooler keeps one session, and this is the other");
    psql(&["SHOW work_mem"])
}

#[test]
fn a_pooler_resets_sessions_between_clients_only_with_session_pooling() {
    let server = Postgres::start_in_memory(&[]).unwrap();
    let mut session = PgBouncer::start(&server, PoolMode::Session).unwrap();
    assert_eq!(inherited(&session, &server), "4MB");
    session.stop().unwrap();
    let mut transaction = PgBouncer::start(&server, PoolMode::Transaction).unwrap();
    assert_eq!(inherited(&transaction, &server), "123kB");
    transaction.kill().unwrap();
    assert!(std::net::TcpStream::connect(("127.0.0.1", transaction.port())).is_err());
    transaction.resume().unwrap();
    assert_eq!(inherited(&transaction, &server), "123kB");
}
