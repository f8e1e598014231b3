//! `semel proxy --check`: what a file means, or all that is wrong with it. No store is asked.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use test_http::Program;

use crate::binary::{Ran, ran, run, semel};

const FILE: &str = "upstream = 'http://127.0.0.1:3000'\nstore = 'postgres://nobody@127.0.0.1:1/nowhere'\n\n[rules]\nlease = '30s'\n";

fn written(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let file = folder.path().join("semel.toml");
    std::fs::write(&file, text).expect("is written");
    (folder, file)
}

fn check(file: &Path, rest: &[&str]) -> Ran {
    ran(semel().args(["proxy", "--check", "--config"]).arg(file).args(rest))
}

#[test]
fn a_file_that_is_right_is_printed_with_everything_it_means_and_no_store_is_asked() {
    let (_folder, file) = written(FILE);
    let printed = check(&file, &[]).fine();
    for line in [
        "upstream               = \"http://127.0.0.1:3000/\"",
        "lease              = \"30s\"",
        "retention          = \"1d\"",
        "[timeouts]",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    let (_folder, again) = written(&printed);
    assert_eq!(check(&again, &[]).fine(), printed, "what was printed means the same");
}

#[test]
fn a_file_that_is_wrong_is_told_all_of_it_by_line() {
    let (_folder, file) =
        written("upstream = 'nowhere'\nlisen = ':80'\n\n[rules]\nlease = '25h'\nmethods = ['GET']\n");
    let said = check(&file, &[]).failed();
    let place = |line: &str| format!("{}:{line}", file.display());
    for line in [
        "1:12: `upstream`",
        "2:1: `lisen` is no setting here; did you mean `listen`?",
        "5:9: `lease`",
        "6:12: `methods`",
    ] {
        assert!(said.contains(&place(line)), "{line}: {said}");
    }
    assert!(said.starts_with("error: 4 settings cannot be:\n"), "{said}");
}

#[test]
fn a_proxy_with_a_wrong_file_does_not_start() {
    let (_folder, file) = written("upstream = 'nowhere'\n");
    let said = ran(semel().args(["proxy", "--config"]).arg(&file)).failed();
    assert!(said.contains("semel.toml:1:12"), "{said}");
    let said = run("proxy").failed();
    assert!(said.contains("--upstream http://127.0.0.1:3000"), "{said}");
    let said = run("proxy --config no/such/file --check").failed();
    assert!(said.contains("no/such/file: cannot be read"), "{said}");
}

#[test]
fn the_command_line_goes_before_the_file_and_the_file_before_the_variable() {
    let (_folder, file) = written(FILE);
    let line = [
        "--upstream",
        "http://127.0.0.1:9",
        "--listen",
        "127.0.0.1:1",
        "--admin",
        "off",
        "--profile",
        "stripe",
        "--access-log",
        "json",
        "--store",
        "file:b",
    ];
    let printed = check(&file, &line).fine();
    for said in [
        "http://127.0.0.1:9/",
        "= \"127.0.0.1:1\"",
        "admin                  = \"off\"",
        "mismatch             = 400",
        "\"json\"",
        "\"file:b\"",
    ] {
        assert!(printed.contains(said), "{said}: {printed}");
    }
    let with = |file: &Path| {
        let mut command = semel();
        ran(command
            .env("SEMEL_STORE", "postgres://app:s3cret@db/semel")
            .args(["proxy", "--check", "--config"])
            .arg(file))
        .fine()
    };
    assert!(with(&file).contains("postgres://nobody@127.0.0.1:1/nowhere"), "the file names a store");
    let (_folder, without) = written("upstream = 'http://127.0.0.1:3000'\n");
    let printed = with(&without);
    assert!(printed.contains("{ env = \"SEMEL_STORE\" }") && !printed.contains("s3cret"), "{printed}");
}

#[test]
fn no_secret_is_printed_wherever_it_came_from() {
    let secret = "0123456789-a-secret-of-32-bytes-or-more";
    let (_folder, file) = written(
        "upstream = 'http://127.0.0.1:3000'\nstore = { env = 'MY_STORE' }\n[principal]\nfrom = 'jwt'\nalgorithm = 'HS256'\nsecret_env = 'MY_SECRET'\n",
    );
    let mut command = semel();
    command
        .env("MY_STORE", "redis://:s3cret@db")
        .env("MY_SECRET", secret)
        .args(["proxy", "--check", "--config"])
        .arg(&file);
    let printed = ran(&mut command).fine();
    assert!(
        printed.contains("{ env = \"MY_STORE\" }") && printed.contains("secret_env = \"MY_SECRET\""),
        "{printed}"
    );
    assert!(!printed.contains(secret) && !printed.contains("s3cret"), "{printed}");
    let short = ran(command.env("MY_SECRET", "short")).failed();
    assert!(short.contains(":6:14: `secret_env` is a secret of 5 bytes; take 32 at least"), "{short}");
    let unset = check(&file, &[]).failed();
    assert!(
        unset.contains("MY_STORE, which is not set") && unset.contains("MY_SECRET, which is not set"),
        "{unset}"
    );
}

#[test]
fn a_proxy_says_in_four_lines_what_it_will_do_and_a_check_says_the_same() {
    let (folder, file) = written(
        "upstream = 'http://127.0.0.1:9'\nlisten = '127.0.0.1:0'\nadmin = 'off'\nstore = 'memory:'\n[[route]]\npath = '/notes'\nmethods = ['POST']\nlapse = 'rerun'\n",
    );
    let mut program = Program::start(semel().args(["proxy", "--config"]).arg(&file)).expect("starts");
    let mut lines = vec![program.next_line()];
    while !lines[0].contains("listening on") {
        lines[0] = program.next_line();
    }
    lines.extend((0..3).map(|_| program.next_line()));
    program.kill().expect("ends");
    drop(folder);
    assert!(lines[0].contains("Z semel proxy: listening on http://127.0.0.1:"), "{lines:?}");
    assert!(lines[0].ends_with(", proxying to http://127.0.0.1:9/"), "{lines:?}");
    assert_eq!(
        lines[1..],
        [
            "  store: memory:; outcomes survive nothing: it ends with its process",
            "  callers: told apart by a digest of `authorization`; without it by address, but requests with a cookie or through an unknown proxy are refused; each host has keys of its own",
            "  after a crash: a key whose run has no known end is held until an operator decides (lapse = \"hold\"); rerun on POST /notes",
        ]
    );
    let checked = run("proxy --check --upstream http://127.0.0.1:9 --store memory: --admin off").fine();
    let checked: Vec<_> = checked.lines().map_while(|line| line.strip_prefix("# ")).collect();
    assert_eq!(checked.len(), 4, "{checked:?}");
    assert_eq!(checked[0], "listening on http://127.0.0.1:8080, proxying to http://127.0.0.1:9/");
    assert_eq!(checked[2], lines[2].trim_start());
    assert!(lines[3].trim_start().starts_with(checked[3]), "{checked:?}");
}

#[test]
fn an_admin_listener_for_everybody_needs_consent() {
    let line = "proxy --check --upstream http://127.0.0.1:3000 --admin 0.0.0.0:9464";
    assert!(
        run(line).failed().contains("--admin: is 0.0.0.0:9464, which others than this machine may reach")
    );
    assert!(run(&format!("{line} --admin-public")).fine().contains("admin_public           = true"));
}

#[test]
fn an_option_that_means_nothing_is_refused_before_any_file_is_read() {
    for (line, said) in [
        ("proxy --upstream nowhere", "http://HOST:PORT"),
        ("proxy --listen 8080", "127.0.0.1:8080"),
        ("proxy --admin no", "127.0.0.1:8080"),
        ("proxy --profile paypal", "ietf and stripe"),
        ("proxy --access-log xml", "json"),
        ("proxy --store mysql://db", "no store for `mysql:`"),
    ] {
        let error = run(line).refused();
        assert!(error.contains(said), "{line}: {error}");
    }
}

#[test]
fn the_example_in_the_repository_is_right() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/semel.toml");
    let printed = check(&file, &[]).fine();
    assert_eq!(printed.matches("[[route]]").count(), 3, "{printed}");
}
