//! Settings that change while a store is used.

use semel::{Claim, Decision, ErrorKind, Outcome, Semel};
use semel_postgres::{PostgresStore, migrate};
use test_services::Postgres;

use crate::server::{granted, key};

fn set(server: &Postgres, setting: &str) {
    server.ask(&format!("ALTER SYSTEM SET {setting}")).unwrap();
    server.ask("SELECT pg_reload_conf()").unwrap();
}

/// Checks until the server's sessions have read the new settings, which they do between two statements.
async fn check_until(store: &PostgresStore, broken: usize) {
    for _ in 0..100 {
        store.check().await.unwrap();
        if store.broken_settings().len() == broken {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{:?}", store.broken_settings());
}

#[tokio::test]
async fn a_setting_that_breaks_the_promise_stops_new_claims_and_nothing_else() {
    let server = Postgres::start_in_memory(&[]).unwrap();
    migrate(&server.url()).await.unwrap();
    let store = PostgresStore::connect(&server.url()).await.unwrap();
    let semel = Semel::new(store.clone());
    let (old, new) = (key("charge"), key("charge"));
    let permit = granted(&semel, Claim::new(&old)).await;
    set(&server, "synchronous_commit = off");
    check_until(&store, 1).await;
    assert_eq!(&*store.broken_settings()[0].setting, "synchronous_commit");
    let error = semel.claim(Claim::new(&new)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("synchronous_commit is off"), "{error}");
    assert!(store.survives().contains("synchronous_commit is off"), "{}", store.survives());
    permit.renew().await.unwrap();
    permit.complete(Outcome::success("ch_1")).await.unwrap();
    assert!(matches!(semel.claim(Claim::new(&old)).await.unwrap(), Decision::Replay(_)));
    set(&server, "synchronous_commit = on");
    check_until(&store, 0).await;
    drop(granted(&semel, Claim::new(&new)).await);
}

#[tokio::test]
async fn where_losses_are_accepted_claims_go_on_and_the_setting_is_shown() {
    let server = Postgres::start_in_memory(&[]).unwrap();
    migrate(&server.url()).await.unwrap();
    let store = PostgresStore::connect(&format!("{}?durability=as-configured", server.url())).await.unwrap();
    set(&server, "synchronous_commit = off");
    check_until(&store, 1).await;
    drop(granted(&Semel::new(store), Claim::new(&key("charge"))).await);
}
