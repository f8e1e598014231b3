//! A secured line, and a server that is not who it says.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use semel::ErrorKind;
use semel_postgres::{PostgresStore, migrate};
use test_services::Postgres;

use crate::server::client;

/// A server with a certificate for this name, and the file that vouches for it.
pub(crate) async fn secured(name: &str) -> (Postgres, tempfile::TempDir) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.pem"), made.cert.pem()).unwrap();
    let server = Postgres::start().unwrap();
    let data = server.folder().join("data");
    let owner = fs::metadata(&data).unwrap().uid();
    for (file, text) in [("server.crt", made.cert.pem()), ("server.key", made.signing_key.serialize_pem())] {
        let file = data.join(file);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&file, Some(owner), None).unwrap();
    }
    let client = client(&server.url()).await;
    client.batch_execute("ALTER SYSTEM SET ssl = on").await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    while client.query_one("SHOW ssl", &[]).await.unwrap().get::<_, &str>(0) != "on" {
        tokio::task::yield_now().await;
    }
    (server, folder)
}

fn url(server: &Postgres, folder: &tempfile::TempDir, host: &str) -> String {
    let trusted = folder.path().join("ca.pem").display().to_string().replace('/', "%2F");
    format!("postgres://semel@{host}:{}/semel?sslmode=verify-full&sslrootcert={trusted}", server.port())
}

#[tokio::test]
async fn a_line_is_secured_and_the_server_is_who_it_says() {
    let (server, folder) = secured("localhost").await;
    let url = url(&server, &folder, "localhost");
    migrate(&url).await.unwrap();
    PostgresStore::connect(&url).await.unwrap();
    // The controls: a server that nobody vouches for, and one that is somebody else.
    let untrusted = format!("postgres://semel@localhost:{}/semel?sslmode=require", server.port());
    assert_eq!(PostgresStore::connect(&untrusted).await.err().unwrap().kind(), ErrorKind::Unavailable);
    let (impostor, folder) = secured("elsewhere").await;
    let url = self::url(&impostor, &folder, "localhost");
    assert_eq!(PostgresStore::connect(&url).await.err().unwrap().kind(), ErrorKind::Unavailable);
}
