//! What is refused at connect, and what is taken all the same; and that a connection comes back.

use semel::store::Verdict;
use semel::{Claim, ErrorKind, Outcome, Semel};
use semel_postgres::{PostgresStore, migrate};
use test_services::{Postgres, Standby};

use crate::server::{client, empty_schema, granted, key};

/// What connecting says, on a server with this setting.
async fn refused(setting: (&str, &str), url: impl Fn(&Postgres) -> String) -> Option<String> {
    let server = Postgres::start_with(&[setting]).unwrap();
    // The schema can be made on any server; only what is acknowledged later is at stake.
    migrate(&server.url()).await.unwrap();
    PostgresStore::connect(&url(&server)).await.err().map(|error| error.to_string())
}

#[tokio::test]
async fn settings_that_lose_what_was_acknowledged_are_refused() {
    for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
        let error = refused((setting, "off"), Postgres::url).await.unwrap();
        assert!(error.starts_with(&format!("{setting} is off")), "{error}");
        assert!(error.contains("durability=as-configured"), "{error}");
    }
    assert_eq!(refused(("synchronous_commit", "local"), Postgres::url).await, None, "there is no standby");
}

#[tokio::test]
async fn whoever_accepts_the_losses_may_connect() {
    let url = |server: &Postgres| format!("{}?durability=as-configured", server.url());
    assert_eq!(refused(("synchronous_commit", "off"), url).await, None);
}

#[tokio::test]
async fn a_standby_is_refused_and_a_commit_that_does_not_wait_for_it() {
    let primary = Postgres::start().unwrap();
    migrate(&primary.url()).await.unwrap();
    let standby = primary.standby(Standby::Synchronous).unwrap();
    let error = PostgresStore::connect(&standby.url()).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("standby"), "{error}");
    let local = format!("{}?options=-c%20synchronous_commit%3Dlocal", primary.url());
    let error = PostgresStore::connect(&local).await.err().unwrap().to_string();
    assert!(error.starts_with("synchronous_commit is local"), "{error}");
    PostgresStore::connect(&primary.url()).await.unwrap();
    let both = format!("postgres://semel@127.0.0.1:{},127.0.0.1:{}/semel", standby.port(), primary.port());
    PostgresStore::connect(&both).await.unwrap();
}

#[tokio::test]
async fn a_database_without_the_schema_is_refused_with_what_to_do() {
    let url = empty_schema().await;
    let error = PostgresStore::connect(&url).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("semel migrate"), "{error}");
    let first = migrate(&url).await.unwrap();
    let again = migrate(&url).await.unwrap();
    assert_eq!((first.from, first.to, again.from, again.to), (0, 3, 3, 3));
    PostgresStore::connect(&url).await.unwrap();
}

#[tokio::test]
async fn many_processes_may_migrate_at_once() {
    let url = empty_schema().await;
    let all: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn({
                let url = url.clone();
                async move { migrate(&url).await }
            })
        })
        .collect();
    let mut first = 0;
    for one in all {
        first += usize::from(one.await.unwrap().unwrap().from == 0);
    }
    assert_eq!(first, 1);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let url = empty_schema().await;
    migrate(&url).await.unwrap();
    client(&url).await.batch_execute("INSERT INTO semel_schema (version) VALUES (99)").await.unwrap();
    for error in [PostgresStore::connect(&url).await.err().unwrap(), migrate(&url).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Newer, "{error}");
        assert!(error.to_string().contains("version 99 of semel's schema"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let error = PostgresStore::connect("postgres://semel@127.0.0.1:1/semel").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("check that the server runs"), "{error}");
}

#[tokio::test]
async fn the_settings_are_shown_against_what_is_wanted() {
    let store = crate::server::open().await;
    let findings = store.check().await.unwrap();
    assert_eq!(findings.len(), 5, "four settings, and the rights");
    assert!(findings.iter().all(|finding| finding.verdict == Verdict::Kept), "{findings:?}");
}

#[tokio::test]
async fn a_store_comes_back_by_itself_after_its_server_did() {
    let mut server = Postgres::start().unwrap();
    migrate(&server.url()).await.unwrap();
    let semel = Semel::new(PostgresStore::connect(&server.url()).await.unwrap());
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key)).await;
    server.kill().unwrap();
    assert!(permit.complete(Outcome::success("ch_1")).await.is_err(), "nobody is there");
    server.resume().unwrap();
    permit.complete(Outcome::success("ch_1")).await.unwrap();
    assert!(semel.get(&key).await.unwrap().unwrap().outcome().is_some());
}
