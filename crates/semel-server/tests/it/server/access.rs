//! Who may ask, what, and how often.

use std::os::unix::fs::PermissionsExt as _;

use semel::ErrorKind;
use semel_server::access::{TokenDigest, Tokens};
use semel_server::serve::{Server, ServerSettings};

use super::started::{claim, get, start, tokens};

const WORK: &str = "Authorization: Bearer semel_work\r\n";
const READ: &str = "Authorization: Bearer semel_read\r\n";

#[tokio::test]
async fn without_tokens_a_server_listens_for_this_machine_only() {
    for everywhere in ["0.0.0.0:0", "[::]:0"] {
        let mut settings = ServerSettings::in_memory();
        settings.listener.listen = everywhere.parse().expect("is an address");
        let Err(error) = Server::start(settings.clone()).await else {
            panic!("{everywhere} is for everybody")
        };
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(
            error.to_string().contains("semel token new") && error.to_string().contains("127.0.0.1"),
            "{error}"
        );
        settings.tokens = tokens("");
        let server = start(settings).await;
        assert!(!server.listening().ip().is_loopback(), "with tokens it may");
    }
}

#[tokio::test]
async fn whoever_has_no_token_is_told_so_and_whoever_has_one_is_let_in() {
    let settings = ServerSettings { tokens: tokens(""), ..ServerSettings::in_memory() };
    let server = start(settings).await;
    let address = server.listening();
    for wrong in [
        "",
        "Authorization: Bearer semel_other\r\n",
        "Authorization: Basic semel_work\r\n",
        "Authorization: semel_work\r\n",
        "Authorization: Bearer\r\n",
        "Cookie: semel_session=semel_work\r\n",
        "Authorization: Bearer semel_work\r\nAuthorization: Bearer semel_other\r\n",
    ] {
        let answer = claim(address, wrong, "a").await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{wrong:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{wrong:?}");
    }
    let answer = claim(address, WORK, "a").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().contains("\"decision\":\"run\""), "{}", answer.text());
    assert_eq!(claim(address, READ, "b").await.status, 403, "a role that is not enough");
    let lower = claim(address, "authorization: bearer  semel_work\r\n", "c").await;
    assert_eq!(lower.status, 200, "the scheme has no case");
}

#[tokio::test]
async fn probes_need_no_token_and_metrics_need_one_that_may_list() {
    let settings = ServerSettings { tokens: tokens(""), ..ServerSettings::in_memory() };
    let server = start(settings).await;
    let address = server.listening();
    assert_eq!(get(address, "/healthz", "").await.text(), "alive\n");
    assert_eq!(get(address, "/readyz", "").await.text(), "ready\n");
    assert_eq!(get(address, "/metrics", "").await.status, 401);
    assert_eq!(get(address, "/metrics", WORK).await.status, 403);
    assert_eq!(get(address, "/metrics", READ).await.status, 200);
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_told_with_when_to_come_back() {
    let tokens = tokens("asks_per_second = 1\nasks_burst = 3");
    let server = start(ServerSettings { tokens, ..ServerSettings::in_memory() }).await;
    let mut statuses = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let answer = claim(server.listening(), WORK, name).await;
        statuses.push((answer.status, answer.header("retry-after").map(ToOwned::to_owned)));
    }
    let fine = (200, None);
    assert_eq!(statuses, [fine.clone(), fine.clone(), fine, (429, Some("1".to_owned()))]);
}

#[tokio::test]
async fn reloaded_tokens_are_good_at_once_and_those_before_no_more() {
    let settings = ServerSettings { tokens: tokens(""), ..ServerSettings::in_memory() };
    let server = start(settings).await;
    let address = server.listening();
    assert_eq!(claim(address, WORK, "a").await.status, 200);
    let digest = TokenDigest::of("semel_new");
    let text = format!("[[token]]\nname = 'new'\nrole = 'work'\ndigest = '{digest}'\n");
    server.reload(&Tokens::parse(&text, "t.toml").expect("is one")).expect("is taken");
    assert_eq!(claim(address, WORK, "b").await.status, 401);
    assert_eq!(claim(address, "Authorization: Bearer semel_new\r\n", "b").await.status, 200);
    assert!(server.reload(&Tokens::none()).is_err(), "none would let everybody in");
}

#[test]
fn a_file_of_tokens_that_others_may_write_is_refused_and_one_they_may_read_is_told() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let path = folder.path().join("tokens.toml");
    let digest = TokenDigest::of("semel_x");
    std::fs::write(&path, format!("[[token]]\nname = 'a'\nrole = 'read'\ndigest = '{digest}'\n"))
        .expect("is written");
    let read_as = |mode| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("is set");
        Tokens::read(&path)
    };
    for mode in [0o666, 0o622, 0o620, 0o602] {
        let errors = read_as(mode).expect_err("others may write").to_string();
        assert!(
            errors.contains("tokens.toml: may be written by others") && errors.contains("chmod go-w"),
            "{errors}"
        );
    }
    let warning = read_as(0o644).expect("is read").warning;
    assert!(warning.is_some_and(|warning| warning.contains("chmod o-r")));
    for mode in [0o600, 0o640] {
        assert_eq!(read_as(mode).expect("is read").warning, None);
    }
    let gone = Tokens::read(&folder.path().join("no")).expect_err("is not there").to_string();
    assert!(gone.contains("cannot be read") && gone.contains("--tokens"), "{gone}");
}
