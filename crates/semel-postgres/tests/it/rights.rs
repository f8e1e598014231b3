//! The rights of the role are checked before anything is asked.

use semel::store::Verdict;
use semel::{Claim, ErrorKind, Outcome, Semel};
use semel_postgres::{PostgresStore, migrate};

use crate::server::{client, empty_database, granted, key};

/// The least set of rights, as docs/stores.md has it.
const LEAST: &str = "GRANT SELECT, INSERT, UPDATE, DELETE ON semel_records, semel_waiters TO ROLE; \
     GRANT USAGE, UPDATE ON SEQUENCE semel_version TO ROLE; GRANT SELECT ON semel_schema TO ROLE; \
     GRANT SELECT, INSERT ON semel_timelines TO ROLE";

/// A database with the schema, a role with these grants, and its URL.
async fn database_for_a_role(grants: &str) -> (String, String, String) {
    let owner = empty_database().await;
    migrate(&owner).await.unwrap();
    let role = format!("app_{:016x}", rand::random::<u64>());
    let text = format!("CREATE ROLE {role} LOGIN; {}", grants.replace("ROLE", &role));
    client(&owner).await.batch_execute(&text).await.unwrap();
    let url = owner.replace("postgres://semel@", &format!("postgres://{role}@"));
    (owner, role, url)
}

#[tokio::test]
async fn the_documented_rights_are_enough_for_everything() {
    let (_, _, url) = database_for_a_role(LEAST).await;
    let store = PostgresStore::connect(&url).await.unwrap();
    let findings = store.check().await.unwrap();
    assert!(findings.iter().all(|finding| finding.verdict == Verdict::Kept), "{findings:?}");
    let semel = Semel::new(store.clone());
    let _wake_ups = store.wake_ups(&semel);
    let key = key("charge");
    granted(&semel, Claim::new(&key)).await.complete(Outcome::success("ch_1")).await.unwrap();
    semel.sweep(100).await.unwrap();
    assert!(semel.get(&key).await.unwrap().is_some());
}

#[tokio::test]
async fn a_role_that_lacks_a_right_is_refused_with_the_grant_to_run() {
    for (right, object) in [
        ("DELETE", "semel_records"),
        ("UPDATE", "semel_records"),
        ("SELECT", "semel_waiters"),
        ("UPDATE", "SEQUENCE semel_version"),
        ("INSERT", "semel_timelines"),
    ] {
        let (owner, role, url) = database_for_a_role(LEAST).await;
        let owner = client(&owner).await;
        owner.batch_execute(&format!("REVOKE {right} ON {object} FROM {role}")).await.unwrap();
        let error = PostgresStore::connect(&url).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let (_, grant) =
            error.to_string().split_once("run: ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert!(grant.contains(right) && grant.contains(&role), "{grant}");
        owner.batch_execute(&grant).await.unwrap();
        PostgresStore::connect(&url).await.unwrap();
    }
}

#[tokio::test]
async fn a_right_that_was_taken_away_is_found_by_the_next_check() {
    let (owner, role, url) = database_for_a_role(LEAST).await;
    let store = PostgresStore::connect(&url).await.unwrap();
    client(&owner).await.batch_execute(&format!("REVOKE DELETE ON semel_records FROM {role}")).await.unwrap();
    let findings = store.check().await.unwrap();
    let rights = findings.iter().find(|finding| &*finding.setting == "set of rights").unwrap();
    assert_eq!(rights.verdict, Verdict::Broken);
    assert!(rights.wanted.contains("GRANT DELETE ON table semel_records"), "{rights:?}");
}

#[tokio::test]
async fn roles_that_could_write_before_a_migration_can_after_it() {
    let owner = crate::server::database_of_0_1().await;
    let role = format!("app_{:016x}", rand::random::<u64>());
    let grants = "GRANT SELECT, INSERT, UPDATE, DELETE ON semel_records, semel_waiters TO ROLE; \
                  GRANT USAGE ON SEQUENCE semel_version TO ROLE; GRANT SELECT ON semel_schema TO ROLE";
    let text = format!("CREATE ROLE {role} LOGIN; {}", grants.replace("ROLE", &role));
    client(&owner).await.batch_execute(&text).await.unwrap();
    migrate(&owner).await.unwrap();
    let url = owner.replace("postgres://semel@", &format!("postgres://{role}@"));
    PostgresStore::connect(&url).await.unwrap();
}
