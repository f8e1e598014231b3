//! Settings that break, and servers that take no writes, while a claim server runs on them: real servers, and what
//! `/readyz`, `/metrics`, the API, the dashboard and `semel check` say.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use semel_ops::store_url::Address;
use semel_server::serve::{Server, ServerSettings};
use serde_json::{Value, json};
use test_http::blocking::Client;
use test_http::{Answer, Browser, Program, Request, Screen, until_blocking};
use test_services::{AppendFsync, Postgres, Redis, Standby};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::binary::{run, semel};

/// How often the settings are checked here; 20 s without a test.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// A claim server within this process, and a caller of it.
struct Serving {
    server: Server,
    client: Client,
    /// Dropped last: the server runs on it.
    runtime: Runtime,
}

impl Serving {
    fn on(url: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let store = url.parse::<Address>().expect("is an address");
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let settings =
            ServerSettings { store_check_every: CHECK_EVERY, ..ServerSettings::new(listen, store) };
        let server = runtime.block_on(Server::start(settings)).expect("starts");
        let client = Client::new(server.listening());
        Self { server, client, runtime }
    }

    fn get(&mut self, path: &str) -> Answer {
        self.client.ask(&Request::get(path).header("host", "localhost")).expect("is answered")
    }

    fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.client.ask(&Request::post_json(path, body).header("host", "localhost")).expect("is answered")
    }

    fn claim(&mut self, name: &str) -> Answer {
        self.post("/v1/claim", &json!({ "operation": "charge", "name": name }))
    }

    /// Waits until `/readyz` answers exactly this.
    fn until_readyz(&mut self, status: u16, body: &str) {
        let mut last = (0, String::new());
        let started_at = Instant::now();
        while last != (status, body.to_owned()) {
            assert!(started_at.elapsed() < Duration::from_secs(40), "/readyz is {last:?} and not {body:?}");
            let answer = self.get("/readyz");
            last = (answer.status, answer.text().to_owned());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What `/v1/stats` says of the store.
    fn store(&mut self) -> Value {
        self.get("/v1/stats").json().expect("is JSON")["store"].clone()
    }

    fn has_banner(&mut self, page: &str) -> bool {
        self.get(page).text().contains("data-test=\"store-banner\"")
    }
}

fn postgres(settings: &[(&str, &str)]) -> Postgres {
    let server = Postgres::start_in_memory(settings).expect("PostgreSQL starts");
    run(&format!("--store {} migrate", server.url())).fine();
    server
}

/// Has the server read this setting anew.
fn set(server: &Postgres, statement: &str) {
    server.ask(&format!("ALTER SYSTEM {statement}")).expect("is set");
    server.ask("SELECT pg_reload_conf()").expect("is read");
}

const READY: &str = "ready\n";
const NOT_SYNCHRONOUS: &str =
    "not ready: store: synchronous_commit is off on the server; new claims are refused\n";

#[test]
fn a_setting_of_postgres_that_breaks_is_shown_everywhere_until_it_is_mended() {
    let server = postgres(&[]);
    let mut serving = Serving::on(&server.url());
    serving.until_readyz(200, READY);
    assert!(!serving.has_banner("/"), "all is well");
    set(&server, "SET synchronous_commit = off");
    serving.until_readyz(503, NOT_SYNCHRONOUS);
    let store = serving.store();
    let finding =
        json!([{ "setting": "synchronous_commit", "found": "off", "wanted": "on (anything but off)" }]);
    assert_eq!((&store["ready"], &store["broken_settings"]), (&false.into(), &finding), "{store}");
    for page in ["/", "/keys", "/pipelines", "/keys?name=none"] {
        assert!(serving.has_banner(page), "{page}");
    }
    for gauge in ["semel_store_ready 0", "semel_store_settings_broken 1"] {
        assert!(serving.get("/metrics").text().contains(gauge), "{gauge}");
    }
    set(&server, "RESET synchronous_commit");
    serving.until_readyz(200, READY);
    assert_eq!(serving.store()["broken_settings"], json!([]));
    assert!(!serving.has_banner("/"));
    assert!(serving.get("/metrics").text().contains("semel_store_ready 1"));
}

#[test]
fn while_a_setting_is_broken_new_claims_are_refused_and_granted_runs_are_completed() {
    let server = postgres(&[]);
    let mut serving = Serving::on(&server.url());
    let granted = serving.claim("granted").ok_json().expect("is decided");
    set(&server, "SET synchronous_commit = off");
    serving.until_readyz(503, NOT_SYNCHRONOUS);
    let refused = serving.claim("new");
    assert_eq!((refused.status, refused.code()), (503, Some("unavailable".to_owned())), "{}", refused.text());
    assert!(refused.text().contains("synchronous_commit is off"), "{}", refused.text());
    let complete = json!({ "permit": granted["permit"], "outcome": { "json": 1 } });
    let completed = serving.post("/v1/complete", &complete).ok_json().expect("is decided");
    assert_eq!(completed["decision"], "done");
    set(&server, "RESET synchronous_commit");
    serving.until_readyz(200, READY);
    assert_eq!(serving.claim("new").ok_json().expect("is decided")["decision"], "run");
}

#[test]
fn where_losses_are_accepted_a_broken_setting_is_said_and_claims_are_taken() {
    let server = postgres(&[]);
    let mut serving = Serving::on(&format!("{}?durability=as-configured", server.url()));
    set(&server, "SET synchronous_commit = off");
    serving
        .until_readyz(200, "ready; store: synchronous_commit is off; what is acknowledged could be lost\n");
    assert!(serving.has_banner("/keys") && serving.store()["ready"] == true);
    assert_eq!(serving.claim("new").ok_json().expect("is decided")["decision"], "run");
}

#[test]
fn a_primary_that_comes_back_as_a_standby_is_not_ready_until_it_is_promoted() {
    let mut server = postgres(&[]);
    let mut serving = Serving::on(&server.url());
    serving.until_readyz(200, READY);
    server.stop().expect("stops");
    fs::write(server.folder().join("data/standby.signal"), "").expect("is written");
    server.resume().expect("starts");
    serving.until_readyz(503, "not ready: store: it is read-only; new claims fail\n");
    assert_ne!(serving.claim("new").status, 200);
    server.promote().expect("is promoted");
    serving.until_readyz(200, READY);
}

#[test]
fn a_postgres_without_a_free_connection_is_not_ready() {
    let server = postgres(&[("max_connections", "12"), ("max_wal_senders", "0"), ("wal_level", "replica")]);
    let mut serving = Serving::on(&server.url());
    serving.until_readyz(200, READY);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let taken = runtime.block_on(take_all_connections(&server.url()));
    serving.until_readyz(503, "not ready: store: its server has no connection left; claims fail\n");
    drop((taken, runtime));
    serving.until_readyz(200, READY);
    assert_eq!(serving.claim("new").ok_json().expect("is decided")["decision"], "run");
}

/// Takes every connection that is free, ends those of semel, and takes these, too.
async fn take_all_connections(url: &str) -> Vec<tokio_postgres::Client> {
    const SEMELS: &str = "FROM pg_stat_activity WHERE application_name = 'semel'";
    let mut taken = Vec::new();
    loop {
        while let Ok((client, connection)) = tokio_postgres::connect(url, tokio_postgres::NoTls).await {
            tokio::spawn(connection);
            taken.push(client);
        }
        let first = taken.first().expect("one was free");
        let row = first.query_one(&format!("SELECT count(*) {SEMELS}"), &[]).await.expect("is counted");
        if row.get::<_, i64>(0) == 0 {
            return taken;
        }
        first.execute(&format!("SELECT pg_terminate_backend(pid) {SEMELS}"), &[]).await.expect("are ended");
    }
}

#[test]
fn a_flood_of_readiness_probes_is_not_a_flood_of_statements() {
    let server = postgres(&[("log_min_duration_statement", "0")]);
    let mut serving = Serving::on(&server.url());
    serving.until_readyz(200, READY);
    let durations = || fs::read_to_string(server.folder().join("log")).unwrap().matches("duration:").count();
    let (before, started_at) = (durations(), Instant::now());
    for _ in 0..1_000 {
        assert_eq!(serving.get("/readyz").status, 200);
    }
    let seconds = usize::try_from(started_at.elapsed().as_secs()).unwrap() + 1;
    // A census in between has a few statements, a check one, a probe a handful with their parse, bind and execute.
    let most = seconds * 60;
    let found = durations() - before;
    assert!(found <= most, "{found} lines for 1,000 requests within {seconds} s");
}

#[test]
fn a_start_line_promises_a_failover_only_with_a_synchronous_standby() {
    let server = postgres(&[]);
    let start_line = || {
        let mut command = semel();
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", &server.url()]);
        let mut program = Program::start(&mut command).expect("starts");
        let mut line = program.next_line();
        while !line.contains("listening on") {
            line = program.next_line();
        }
        program.kill().expect("ends");
        line
    };
    let alone = start_line();
    assert!(alone.contains("loss of power") && !alone.contains("a failover to"), "{alone}");
    let _standby = server.standby(Standby::Synchronous).expect("follows");
    let followed = start_line();
    assert!(followed.contains("a failover to its synchronous standby"), "{followed}");
}

const EVICTING: &str = "maxmemory-policy is allkeys-lru";

#[test]
fn a_redis_that_syncs_less_than_was_demanded_stops_new_claims() {
    let server = Redis::start(AppendFsync::Always).expect("Redis starts");
    let mut serving = Serving::on(&format!("{}?durability=always", server.url()));
    serving.until_readyz(200, READY);
    server.ask(&["CONFIG", "SET", "appendfsync", "everysec"]).expect("is set");
    serving.until_readyz(
        503,
        "not ready: store: durability is everysec on the server; new claims are refused\n",
    );
    let claim = serving.claim("new");
    assert_eq!((claim.status, claim.code()), (503, Some("unavailable".to_owned())), "{}", claim.text());
    server.ask(&["CONFIG", "SET", "appendfsync", "always"]).expect("is set");
    serving.until_readyz(200, READY);
}

#[test]
fn a_redis_that_syncs_less_than_at_first_is_said_where_nothing_was_demanded_and_claims_are_taken() {
    let server = Redis::start(AppendFsync::Always).expect("Redis starts");
    let mut serving = Serving::on(&server.url());
    serving.until_readyz(200, READY);
    server.ask(&["CONFIG", "SET", "appendfsync", "everysec"]).expect("is set");
    serving.until_readyz(200, "ready; store: durability is everysec; what is acknowledged could be lost\n");
    assert!(serving.has_banner("/keys"));
    assert_eq!(serving.claim("new").ok_json().expect("is decided")["decision"], "run");
}

#[test]
fn an_eviction_policy_of_redis_stops_new_claims_whatever_was_demanded() {
    let server = Redis::start(AppendFsync::Always).expect("Redis starts");
    let mut serving = Serving::on(&server.url());
    serving.until_readyz(200, READY);
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).expect("is set");
    let refused = format!("not ready: store: {EVICTING} on the server; new claims are refused\n");
    serving.until_readyz(503, &refused);
    let setting = serving.store()["broken_settings"][0]["setting"].clone();
    assert!(setting.as_str().unwrap().starts_with("maxmemory-policy at 127.0.0.1:"), "{setting}");
    assert!(serving.has_banner("/keys"));
    let claim = serving.claim("new");
    assert_eq!((claim.status, claim.code()), (503, Some("unavailable".to_owned())), "{}", claim.text());
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).expect("is set");
    serving.until_readyz(200, READY);
    assert_eq!(serving.claim("new").ok_json().expect("is decided")["decision"], "run");
}

#[test]
fn a_redis_that_becomes_a_replica_is_not_ready_until_it_is_a_master_again() {
    let master = Redis::start(AppendFsync::Always).expect("Redis starts");
    let server = Redis::start(AppendFsync::Always).expect("Redis starts");
    let mut serving = Serving::on(&server.url());
    serving.until_readyz(200, READY);
    server.ask(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]).expect("follows");
    serving.until_readyz(503, "not ready: store: it is read-only; new claims fail\n");
    assert_ne!(serving.claim("new").status, 200);
    server.ask(&["REPLICAOF", "NO", "ONE"]).expect("leads");
    serving.until_readyz(200, READY);
}

#[test]
fn a_redis_whose_memory_is_full_is_not_ready() {
    let server = Redis::start(AppendFsync::Always).expect("Redis starts");
    let mut serving = Serving::on(&server.url());
    serving.until_readyz(200, READY);
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]).expect("is set");
    serving.until_readyz(503, "not ready: store: it is full; new claims are refused\n");
    let refused = serving.claim("new");
    assert_eq!((refused.status, refused.code()), (503, Some("full".to_owned())), "{}", refused.text());
    let checked = run(&format!("--store {} check --json", server.url()));
    let json: Value = serde_json::from_str(&checked.out).expect("is JSON");
    assert_eq!((checked.code, &json["ready"], &json["kept"]), (Some(1), &false.into(), &true.into()));
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]).expect("is set");
    serving.until_readyz(200, READY);
    let checked = run(&format!("--store {} check", server.url())).fine();
    assert!(checked.contains("It is ready"), "{checked}");
}

#[test]
fn a_store_that_hangs_is_not_ready_within_seconds() {
    let server = Redis::start(AppendFsync::Always).expect("Redis starts");
    let info = server.ask(&["INFO", "server"]).expect("answers").concat();
    let pid = info.lines().find_map(|line| line.strip_prefix("process_id:")).expect("is named");
    let pid = Pid::from_raw(pid.trim().parse().expect("is a number")).expect("is a process");
    // The store itself would wait for much longer.
    let mut serving = Serving::on(&format!("{}?reply_within_ms=30000", server.url()));
    serving.until_readyz(200, READY);
    kill_process(pid, Signal::STOP).expect("is stopped");
    let stopped_at = Instant::now();
    serving.until_readyz(503, "not ready: store: it does not answer in time\n");
    let took = stopped_at.elapsed();
    kill_process(pid, Signal::CONT).expect("goes on");
    assert!(took < Duration::from_secs(6), "{took:?}");
    serving.until_readyz(200, READY);
}

#[test]
fn the_admin_side_of_a_proxy_says_that_its_store_is_read_only() {
    let server = Redis::start(AppendFsync::Always).expect("Redis starts");
    let mut command = semel();
    command.args(["proxy", "--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0"]);
    command.args(["--admin", "127.0.0.1:0", "--store", &server.url()]);
    let mut program = Program::start(&mut command).expect("starts");
    let mut line = program.next_line();
    while !line.contains("listening on") {
        line = program.next_line();
    }
    let admin = line.rsplit("http://").next().expect("names its admin side").trim();
    let mut client = Client::new(admin.parse().expect("is an address"));
    let mut until = |status: u16, part: &str| {
        until_blocking(part, || {
            let answer =
                client.ask(&Request::get("/readyz").header("host", "localhost")).expect("is answered");
            (answer.status == status && answer.text().contains(part)).then_some(())
        });
    };
    until(200, READY);
    server.ask(&["REPLICAOF", "127.0.0.1", "9"]).expect("follows");
    until(503, "it is read-only");
    program.until_written("the store is not ready: it is read-only");
    server.ask(&["REPLICAOF", "NO", "ONE"]).expect("leads");
    until(200, READY);
    program.until_written("the store is ready again");
}

#[test]
fn a_banner_comes_and_goes_on_a_page_that_stays_open() {
    let server = Redis::start(AppendFsync::Always).expect("Redis starts");
    let serving = Serving::on(&server.url());
    let browser = Browser::start().expect("the browser starts");
    let page = browser.page(Screen::ALL[0]).expect("opens");
    page.go(&format!("http://{}/", serving.server.listening())).expect("is shown");
    // The control: without it, a reload would show the banner just as well.
    page.eval("window.semelNeverReloaded = true").expect("is marked");
    let banner = "document.querySelector('[data-test=store-banner]')?.textContent ?? ''";
    page.until("no banner", &format!("({banner}) === ''")).expect("all is well");
    server.ask(&["REPLICAOF", "127.0.0.1", "9"]).expect("follows");
    page.until("a banner", &format!("({banner}).includes('it is read-only')")).expect("comes");
    server.ask(&["REPLICAOF", "NO", "ONE"]).expect("leads");
    page.until("no banner", &format!("({banner}) === ''")).expect("goes");
    assert_eq!(page.eval("window.semelNeverReloaded").expect("is asked"), Value::Bool(true));
}

#[test]
fn the_probes_of_a_server_end_with_it() {
    let server = postgres(&[]);
    let serving = Serving::on(&server.url());
    let connected = || {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'semel'";
        server.ask(count).expect("is counted").parse::<u32>().expect("is a number")
    };
    until_blocking("connections", || (connected() > 0).then_some(()));
    let Serving { server: claim_server, client, runtime } = serving;
    runtime.block_on(claim_server.drain());
    drop(client);
    until_blocking("all connections to be closed", || (connected() == 0).then_some(()));
}
