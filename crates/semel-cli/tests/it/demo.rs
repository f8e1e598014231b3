//! `semel demo`, as the first thing that anybody runs.

use test_http::blocking::Client;
use test_http::{Answer, Program, Request};

use crate::binary::{run, semel};

/// The two numbers of a row: without semel, and with it.
fn row(account: &str, what: &str) -> (u64, u64) {
    let line =
        account.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {account}"));
    let number =
        |word: &str| if word == "-" { 0 } else { word.replace(',', "").parse().expect("is a number") };
    let mut words = line.split_whitespace().rev().map(number);
    let with = words.next().expect("has a number");
    (words.next().expect("has two"), with)
}

#[test]
fn every_payment_is_charged_once_with_semel_and_not_without() {
    let account = run("demo --requests 60 --seed 1").fine();
    assert_eq!(row(&account, "payments wanted"), (60, 60));
    let (bare, guarded) = row(&account, "charges made");
    assert_eq!(guarded, 60, "{account}");
    assert!(bare > 60, "without semel, the same clients must be charged more than once: {account}");
    let (bare, guarded) = row(&account, "more than once");
    assert!(bare > 0 && guarded == 0, "{account}");
    assert!(account.contains("✗ without semel:") && account.contains("✓ with semel:"), "{account}");
}

#[test]
fn what_clients_and_the_api_counted_adds_up() {
    let account = run("demo --requests 60 --seed 2").fine();
    let with = |what| row(&account, what).1;
    let ended = with("got 201 from a run") + with("got 201 from a replay");
    assert_eq!((ended, with("held for a person")), (60, 0), "{account}");
    assert_eq!(with("reused the key"), with("and were refused"), "{account}");
    assert_eq!(with("charges made") + with("answered 503"), with("requests seen"), "{account}");
    assert_eq!(with("requests sent"), 60 + with("of which retries"), "{account}");
}

#[test]
fn a_proxy_killed_in_the_middle_of_a_charge_leaves_one_effect_and_one_answer() {
    let account = run("demo --requests 1 --seed 1").fine();
    assert_eq!(row(&account, "killed in the middle of a charge"), (0, 1), "{account}");
    assert_eq!(row(&account, "charges made").1, 1, "{account}");
    assert!(row(&account, "hung up on").1 > 0, "the client of the charge must notice the kill: {account}");
    assert!(row(&account, "asked by semel").1 > 0, "only the probe can know of the charge: {account}");
    assert_eq!((row(&account, "from a run").1, row(&account, "from a replay").1), (0, 1), "{account}");
    assert!(account.contains("killed 1 time (kill -9)"), "{account}");
}

#[test]
fn what_it_cannot_show_is_refused() {
    assert!(run("demo --requests 0").refused().contains("at least 1"));
    assert!(run("demo --requests 1000000").refused().contains("100000 at most"));
}

/// What a server answers to a payment of this amount, with a key.
fn paid(address: &str, cents: u32) -> Answer {
    let body = format!("{{\"payment\":\"mine\",\"cents\":{cents}}}");
    let request = Request::new("POST", "/payments").header("host", "demo").key("mine").body(body);
    Client::new(address.parse().expect("is an address")).ask(&request).expect("is answered")
}

#[test]
fn what_is_kept_up_can_be_tried_by_hand() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let mut command = semel();
    command.env("TMPDIR", folder.path()).args(["demo", "--keep", "--requests", "5"]);
    let mut demo = Program::start(&mut command).expect("starts");
    demo.until_written("Ctrl-C ends it and removes the store");
    let shown = demo.out();
    let addresses: Vec<_> = shown
        .lines()
        .filter_map(|line| Some(line.split_once("curl -i http://")?.1.split('/').next()?.to_owned()))
        .collect();
    let [proxy, again, other, api] = &addresses[..] else { panic!("{addresses:?}") };
    assert!(proxy == again && again == other && api != proxy);
    let first = paid(proxy, 4_200);
    assert!(first.status == 201 && !first.is_replay(), "{first:?}");
    let second = paid(proxy, 4_200);
    assert!(second.status == 201 && second.is_replay(), "{second:?}");
    assert_eq!(paid(proxy, 1).status, 422);
    assert_eq!(paid(api, 1).status, 201, "past the proxy, every request charges");
    let after = |what: &str| shown.split_once(what).and_then(|(_, rest)| rest.lines().next()).expect(what);
    let dashboard = after("Dashboard: http://").trim_end_matches('/').parse().expect("is an address");
    let request = Request::new("GET", "/").header("host", "127.0.0.1");
    let page = Client::new(dashboard).ask(&request).expect("is answered");
    assert!(page.status < 400, "{page:?}");
    assert!(std::path::Path::new(after("Store:     ")).join("lock").exists());
    demo.signal(rustix::process::Signal::INT);
    assert!(demo.wait().success(), "{}", demo.tail());
    assert!(
        std::fs::read_dir(folder.path()).expect("is a folder").next().is_none(),
        "Ctrl-C removes the store"
    );
}

#[test]
fn ctrl_c_leaves_no_folder_behind() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let is_empty = || std::fs::read_dir(folder.path()).expect("is a folder").next().is_none();
    let mut command = semel();
    command.env("TMPDIR", folder.path()).args(["demo", "--requests", "3000"]);
    let mut demo = Program::start(&mut command).expect("starts");
    test_http::until_blocking("the folder of the store", || (!is_empty()).then_some(()));
    // Its store is opened after its folder was made, and signals are listened for after that.
    test_http::until_blocking("the store", || {
        let made = std::fs::read_dir(folder.path()).expect("is a folder").flatten().next()?;
        made.path().join("store/lock").exists().then_some(())
    });
    demo.signal(rustix::process::Signal::INT);
    demo.wait();
    assert!(is_empty(), "{}", demo.tail());
}
