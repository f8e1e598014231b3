//! `--store http://…`: a store that a running process has, looked into and acted on through that process.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use semel::{Claim, Decision, Outcome, Semel};
use semel_stream::{Pipeline, Position};
use serde_json::Value;
use tempfile::TempDir;
use test_http::{Program, Role, Token};

use crate::binary::{Ran, on, ran, run as semel_says, semel};
use crate::place::{Place, id, proxy, serve};
use crate::records::{fill, hold, key};

type Start = fn(&str, &[&str]) -> (Program, String);

const PROCESSES: [(&str, Start); 2] = [("serve", serve), ("proxy", proxy)];

/// Members that say how long ago something was, or where it was asked.
const RELATIVE: [&str; 6] = ["age_ms", "took_ms", "at", "store", "from", "exported_at"];

/// A process on a store in a folder, with tokens of every kind.
struct InUse {
    url: String,
    folder: TempDir,
    _program: Program,
}

impl InUse {
    fn start(place: &Place, start: Start, tokens: &[&Token]) -> Self {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let audit = folder.path().join("audit.jsonl").display().to_string();
        let file = folder.path().join("tokens.toml");
        let mut options = vec!["--audit", audit.as_str()];
        let path = file.display().to_string();
        if !tokens.is_empty() {
            let text: String = tokens.iter().map(|token| token.toml()).collect();
            private(&file, &text);
            options.extend(["--tokens", path.as_str()]);
        }
        let (program, url) = start(place.url(), &options);
        Self { url, folder, _program: program }
    }

    /// Runs a line through the process.
    fn says(&self, line: &str) -> Ran {
        let words = line.split(' ').filter(|word| !word.is_empty());
        ran(semel().args(["--store", &self.url]).args(words))
    }

    fn says_to(&self, token: &Token, line: &str) -> Ran {
        let words = line.split(' ').filter(|word| !word.is_empty());
        ran(semel().env("SEMEL_TOKEN", &token.text).args(["--store", &self.url]).args(words))
    }

    /// The lines of the audit log: caller, action and result.
    fn audited(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("audit.jsonl")).expect("is there");
        let line = |line: &str| {
            let line: Value = serde_json::from_str(line).expect("is JSON");
            let word = |name: &str| line[name].as_str().unwrap_or("-").to_owned();
            format!("{} {} {} {}", word("caller"), word("action"), word("name"), word("result"))
        };
        text.lines().map(line).collect()
    }
}

fn private(path: &Path, text: &str) -> PathBuf {
    std::fs::write(path, text).expect("is written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("is set");
    path.to_owned()
}

/// Records of every kind, receipts and offsets.
fn full() -> Place {
    let place = Place::file();
    fill(&place);
    place.with(async |semel| {
        let orders = Pipeline::new(&semel, "orders").expect("is fine");
        let Decision::Run(permit) = orders.claim("e-1").await.expect("is answered") else { panic!("is new") };
        permit.complete(Outcome::success("paid\n")).await.expect("is completed");
        hold_event(&semel, &orders).await;
        let reader = orders.take("events.jsonl").await.expect("is taken");
        reader.commit(Position::new(41), Some("e-1")).await.expect("is committed");
    });
    place
}

async fn hold_event(semel: &Semel, pipeline: &Pipeline) {
    hold(semel, &pipeline.receipt_key("e-2").expect("is a key")).await;
}

/// What a command printed, a JSON value a line, without what differs from one moment to the next.
fn lasting(ran: Ran) -> Vec<Value> {
    let mut lines = ran.json_lines();
    for line in &mut lines {
        forget_relative(line);
    }
    lines
}

fn forget_relative(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|name, _| !RELATIVE.contains(&name.as_str()));
        members.values_mut().for_each(forget_relative);
    }
}

/// Every command that reads, with what it prints for scripts.
fn reading() -> Vec<String> {
    let mut lines: Vec<String> = [
        "keys list --all --json --outcome",
        "keys list --json --state held --sort age",
        "keys list --json --scope acme --operation charge --older-than 0s",
        "receipts orders --json",
        "receipts show orders e-1 --json --outcome",
        "offsets --json",
        "stats --json",
        "watch --looks 1 --json",
        "check --json",
        "export",
    ]
    .map(str::to_owned)
    .into();
    lines.extend(["order-1", "order-2", "order-3", "p-1", "p-2", "p-3"].map(|name| {
        let id = id(&key(name));
        format!("keys show {} --json --outcome", &id[..12])
    }));
    lines
}

#[test]
fn a_store_in_use_shows_through_its_process_what_it_shows_by_itself() {
    let place = full();
    let expected: Vec<_> = reading().iter().map(|line| (line.clone(), lasting(on(&place, line)))).collect();
    for (name, start) in PROCESSES {
        let in_use = InUse::start(&place, start, &[]);
        let refused = on(&place, "keys list").failed();
        for part in [
            "in use by process",
            "semel --store http://127.0.0.1:9464 keys list",
            "semel --store http://127.0.0.1:4747 keys list",
        ] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        assert!(!refused.contains("Semel::"), "{refused}");
        for (line, expected) in &expected {
            assert!(!expected.is_empty(), "{line} shows something");
            let found = lasting(in_use.says(line));
            let is_check = line.starts_with("check");
            // How much room a disk has changes by itself.
            let same = if is_check { found[0]["kept"] == expected[0]["kept"] } else { found == *expected };
            assert!(same, "{line} through {name}: {found:#?}\nand not {expected:#?}");
        }
    }
}

#[test]
fn what_is_done_through_a_process_is_done_and_written_down_there() {
    for (name, start) in PROCESSES {
        let place = full();
        let operate = Token::new(Role::Operate, &[]).named("ann");
        let in_use = InUse::start(&place, start, &[&operate]);
        let (running, held) = (id(&key("order-3")), id(&key("p-2")));
        let outcome = private(&in_use.folder.path().join("outcome"), "paid").display().to_string();
        let done = |line: &str| in_use.says_to(&operate, line).fine();
        assert!(
            done(&format!("keys release {running} --yes")).starts_with("Released acme/us charge order-3")
        );
        assert!(done(&format!("keys resolve {held} --outcome-file {outcome} --yes")).starts_with("Resolved"));
        let dry = done("keys resolve --scope globex --release --dry-run");
        assert!(dry.contains("With --dry-run nothing was changed"), "{dry}");
        assert!(done("keys resolve --scope globex --release --yes").contains("1 record: 1 settled."));
        assert!(done("receipts record orders e-2 --yes").contains("counts as processed"));
        assert!(done("receipts record orders e-9 --yes").contains("counts as processed"));
        assert!(done("offsets move orders events.jsonl --to start --yes").contains("to its start"));
        assert!(done("sweep").starts_with("Removed 0 records"));
        let state =
            |key: &str| in_use.says_to(&operate, &format!("keys show {key} --json")).json()["state"].clone();
        assert_eq!((state(&running), state(&held)), ("released".into(), "done".into()), "{name}");
        assert_eq!(state(&id(&key("p-1"))), "released");
        let offset = in_use.says_to(&operate, "offsets orders --json").json();
        assert_eq!((&offset["position"], &offset["epoch"]), (&Value::Null, &2.into()));
        let mut audited = in_use.audited();
        audited.retain(|line| line.ends_with(" done"));
        assert_eq!(
            audited,
            [
                "ann release order-3 done",
                "ann complete p-2 done",
                "ann release p-1 done",
                "ann record_event e-2 done",
                "ann record_event e-9 done",
                "ann move_offset events.jsonl done",
            ],
            "{name}"
        );
        assert_eq!(in_use.audited().len(), 12, "each is written down before and after");
    }
}

#[test]
fn a_token_that_only_reads_neither_acts_nor_sees_what_is_in_an_outcome() {
    for (_, start) in PROCESSES {
        let place = full();
        let (read, operate) = (Token::new(Role::Read, &[]).named("bob"), Token::new(Role::Operate, &[]));
        let in_use = InUse::start(&place, start, &[&read, &operate]);
        let held = id(&key("p-2"));
        let version = |token: &Token| {
            in_use.says_to(token, &format!("keys show {held} --json")).json()["version"].clone()
        };
        let before = version(&read);
        for line in [
            format!("keys release {held} --yes"),
            format!("keys resolve {held} --release --yes"),
            "keys release --state held --yes".to_owned(),
            "receipts record orders e-9 --yes".to_owned(),
            "offsets move orders events.jsonl --to start --yes".to_owned(),
        ] {
            let error = in_use.says_to(&read, &line).failed();
            assert_eq!(
                error,
                "error: the token \"bob\" has the role \"read\", which is not enough to release, resolve or move anything; use one \
                 with the role \"operate\"\n",
                "{line}"
            );
        }
        assert_eq!(
            in_use.says_to(&read, "sweep").failed(),
            "error: the server refused: the role \"read\" is not enough to release or resolve a record; ask with another token\n"
        );
        assert_eq!(version(&read), before);
        assert!(
            in_use
                .says_to(&read, "keys release --state held --dry-run")
                .fine()
                .contains("nothing was changed")
        );
        let seen = in_use.says_to(&read, &format!("keys show {} --json", id(&key("order-1")))).json();
        assert_eq!(seen["outcome"]["bytes"], "{\"id\":\"ch_1\"}".len());
        for line in ["keys list --all --json --outcome", "receipts show orders e-1 --outcome", "export"] {
            let error = in_use.says_to(&read, line).failed();
            assert!(error.contains("\"read\", which is not enough to see what is in an outcome"), "{error}");
        }
        let receipts = in_use.says_to(&read, "receipts orders --json").fine();
        assert!(receipts.contains("\"e-1\"") && !receipts.contains("paid"), "{receipts}");
        assert!(in_use.says_to(&read, "receipts orders").fine().contains("5 B"));
        // The control: a token that may, does and sees.
        assert!(in_use.says_to(&operate, "receipts orders --json").fine().contains("paid"));
        in_use.says_to(&operate, &format!("keys release {held} --yes")).fine();
        assert_ne!(version(&read), before);
    }
}

#[test]
fn a_token_with_a_scope_sees_and_reaches_no_other() {
    for (_, start) in PROCESSES {
        let place = full();
        let (acme, all) = (Token::new(Role::Operate, &["acme"]), Token::new(Role::Operate, &[]));
        let in_use = InUse::start(&place, start, &[&acme, &all]);
        let names = |token: &Token| {
            let lines = in_use.says_to(token, "keys list --all --json").json_lines();
            let mut names: Vec<_> =
                lines.iter().map(|line| line["name"].as_str().expect("is text").to_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&acme), ["order-1", "order-2", "order-3"]);
        assert_eq!(names(&all).len(), 9, "the control sees them all");
        assert_eq!(in_use.says_to(&acme, "stats --json").json()["records"], 3);
        assert_eq!(in_use.says_to(&acme, "offsets --json").fine(), "");
        let exported = in_use.says_to(&acme, "export").fine();
        assert!(exported.contains("order-1") && !exported.contains("globex"), "{exported}");
        let foreign = id(&key("p-2"));
        for line in [format!("keys show {foreign}"), format!("keys release {foreign} --yes")] {
            let error = in_use.says_to(&acme, &line).failed();
            assert!(error.starts_with("error: this store has no record whose id begins with"), "{error}");
        }
        let outside = "error: the server refused: the scope is outside this token's scope\n";
        assert_eq!(in_use.says_to(&acme, "keys list --scope globex").failed(), outside);
        assert_eq!(
            in_use.says_to(&acme, "sweep").failed(),
            "error: the server refused: a sweep is of all scopes; ask with a token that has none\n"
        );
        in_use.says_to(&all, &format!("keys show {foreign}")).fine();
    }
}

#[test]
fn who_cannot_get_in_is_told_why_and_what_to_do() {
    let place = Place::file();
    let work = Token::new(Role::Work, &[]);
    let in_use = InUse::start(&place, serve, &[&work]);
    let url = &in_use.url;
    assert_eq!(
        in_use.says("stats").failed(),
        format!(
            "error: cannot open {url}: the server wants a token; put it into SEMEL_TOKEN, or into a file that --token-file names \
             (`semel token new` makes tokens)\n"
        )
    );
    assert_eq!(
        in_use.says_to(&Token::new(Role::Read, &[]), "stats").failed(),
        format!(
            "error: cannot open {url}: the server does not know the token in SEMEL_TOKEN; is it this server's, and still in its \
             file of tokens?\n"
        )
    );
    assert_eq!(
        in_use.says_to(&work, "stats").failed(),
        format!(
            "error: cannot open {url}: the server refused: the role \"work\" is not enough to see which records there are; ask \
             with another token\n"
        )
    );
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("is free");
    assert_eq!(
        semel_says(&format!("--store http://{free} stats")).failed(),
        format!(
            "error: cannot open http://{free}: nothing listens at {free}; `semel serve` listens on port 4747, and the admin side of \
             `semel proxy` on port 9464, unless they were started with others\n"
        )
    );
    let error = semel_says(&format!("--store {} stats", url.replace("http://", "https://"))).failed();
    assert!(
        error.contains("does not speak TLS as expected") && error.contains("is it http:// and not https://?"),
        "{error}"
    );
    let error = semel_says("--store http://semel_abc@127.0.0.1:4747 stats").refused();
    assert!(error.contains("SEMEL_TOKEN") && !error.contains("semel_abc"), "{error}");
}

/// A server that answers every request with this status, this media type and this body.
fn answering(status: &str, media_type: &str, body: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("is free");
    let address = listener.local_addr().expect("has one");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nlocation: http://127.0.0.1:1/\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            drop(head(&mut stream));
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    address
}

/// A request up to the end of its head.
fn head(stream: &mut TcpStream) -> Vec<u8> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    head
}

#[test]
fn what_is_not_semel_or_too_old_is_told_as_that() {
    let not_semel = |address: SocketAddr, answered: &str| {
        format!(
            "error: cannot open http://{address}: what answers at http://{address} is not a semel server: it answered {answered}; \
             `semel serve` listens on port 4747, and the admin side of `semel proxy` on port 9464, unless they were started with \
             others\n"
        )
    };
    let told = |address: SocketAddr| semel_says(&format!("--store http://{address} stats")).failed();
    let address = answering("404 Not Found", "text/html; charset=utf-8", "no");
    assert_eq!(told(address), not_semel(address, "404 with text/html"));
    let address = answering("302 Found", "text/plain", "");
    assert_eq!(told(address), not_semel(address, "302 with text/plain"), "no redirect is followed");
    let address = answering("502 Bad Gateway", "application/problem+json", "{\"title\":\"another's\"}");
    assert_eq!(told(address), not_semel(address, "502 with application/problem+json"));
    let problem =
        "{\"code\":\"not_found\",\"detail\":\"there is no such path; /docs lists those that there are\"}";
    let address = answering("404 Not Found", "application/problem+json", problem);
    assert_eq!(
        told(address),
        format!(
            "error: cannot open http://{address}: the server is of an older release, which cannot be looked into from elsewhere; \
             upgrade it to the release of this command ({})\n",
            env!("CARGO_PKG_VERSION")
        )
    );
    let address = answering("200 OK", "application/json", "{}");
    let said = told(address);
    assert!(said.contains("to /v1/store cannot be read") && said.contains("is it semel"), "{said}");
}

/// Something between a command and a server that loses the answer to everything that changes something.
fn losing_answers(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("is free");
    let address = listener.local_addr().expect("has one");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || while pass(&client, server).is_some() {});
        }
    });
    address
}

/// Passes one request on, and its answer back unless it is to be lost. `None` ends the connection.
fn pass(mut client: &TcpStream, server: SocketAddr) -> Option<()> {
    let mut request = head(&mut client.try_clone().ok()?);
    let text = String::from_utf8_lossy(&request).to_lowercase();
    let length = text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    client.read_exact(&mut body).ok()?;
    request.extend(body);
    let is_get = request.starts_with(b"GET ");
    let mut upstream = TcpStream::connect(server).ok()?;
    let ends = String::from_utf8_lossy(&request).replacen("\r\n", "\r\nconnection: close\r\n", 1);
    upstream.write_all(ends.as_bytes()).ok()?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer).ok()?;
    if is_get {
        client.write_all(&answer).ok()?;
    }
    // Either way, one request a connection.
    None
}

#[test]
fn an_action_whose_answer_is_lost_is_unknown_and_the_command_says_how_to_find_out() {
    let place = full();
    let in_use = InUse::start(&place, serve, &[]);
    let lossy = losing_answers(in_use.url.trim_start_matches("http://").parse().expect("is an address"));
    let held = id(&key("p-2"));
    let words = ["keys", "resolve", &held, "--release", "--yes"];
    let error = ran(semel().args(["--store", &format!("http://{lossy}")]).args(words)).failed();
    for part in [
        "it is not known whether this was done",
        &format!("find out with `semel --store http://{lossy} keys show {}`", &held[..8]),
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(in_use.says(&format!("keys show {held} --json")).json()["state"], "released", "it was done");
    let many = "keys resolve --scope globex --release --yes";
    let error = ran(semel().args(["--store", &format!("http://{lossy}")]).args(many.split(' '))).failed();
    assert!(error.contains("1 record: 0 settled, 1 not known"), "{error}");
}

#[test]
fn a_token_may_come_from_a_file_and_one_that_others_can_read_draws_a_warning() {
    let place = Place::file();
    let read = Token::new(Role::Read, &[]);
    let in_use = InUse::start(&place, serve, &[&read]);
    let file = private(&in_use.folder.path().join("token"), &format!("{}\n", read.text));
    let line = format!("--token-file {} stats --json", file.display());
    let told = in_use.says(&line);
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("is set");
    let told = in_use.says(&line);
    assert_eq!(told.code, Some(0));
    assert!(told.err.starts_with("warning: ") && told.err.contains("chmod o-r"), "{}", told.err);
    assert!(!told.err.contains(&read.text));
    let error = in_use.says("--token-file /no/such/file stats").failed();
    assert!(error.contains("cannot read the token in /no/such/file"), "{error}");
    let error = ran(semel().args(["--store", "memory:", "--token-file"]).arg(&file).arg("stats")).refused();
    assert!(error.contains("--token-file is for a server"), "{error}");
}

#[test]
fn what_needs_the_store_itself_is_refused_with_where_to_find_it() {
    let url = "http://127.0.0.1:4747";
    for line in [
        "migrate",
        "bench",
        "import",
        "serve --listen 127.0.0.1:0",
        "proxy --upstream http://127.0.0.1:9 --listen 127.0.0.1:0 --admin off",
        "consume --source - --pipeline p --exec true",
    ] {
        let Ran { code, err: error, .. } = semel_says(&format!("{line} --store {url}"));
        assert_eq!(code, Some(1), "{line}: {error}");
        for part in
            ["is a running server, and this needs the store itself", "`file:FOLDER` once no process uses it"]
        {
            assert!(error.contains(part), "{line}: {error}");
        }
    }
    let place = Place::file();
    let in_use = InUse::start(&place, serve, &[]);
    let error = in_use.says("keys release --state held --yes --audit a.jsonl").refused();
    assert!(error.contains("the server writes the audit log"), "{error}");
}

#[test]
fn many_large_records_come_page_by_page_and_whole() {
    let place = Place::file();
    place.with(async |semel| {
        for number in 0..24_u8 {
            let key = semel::Key::new("large", &format!("n-{number}")).expect("is a key");
            let Decision::Run(permit) = semel.claim(Claim::new(&key)).await.expect("is answered") else {
                panic!("is new")
            };
            permit.complete(Outcome::success(vec![number; 1 << 20])).await.expect("is completed");
        }
    });
    let direct = lasting(on(&place, "keys list --all --json --outcome"));
    let in_use = InUse::start(&place, serve, &[]);
    assert_eq!(lasting(in_use.says("keys list --all --json --outcome")), direct);
    assert_eq!(direct.len(), 24);
    assert_eq!(lasting(in_use.says("keys list --sort age --json --outcome --limit 24")).len(), 24);
}

#[test]
fn https_is_trusted_by_the_authority_that_is_named_and_by_no_other() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("is made");
    let certificate = private(&folder.path().join("cert.pem"), &cert.pem()).display().to_string();
    let key = private(&folder.path().join("key.pem"), &signing_key.serialize_pem()).display().to_string();
    let (program, url) =
        serve("memory:", &["--tls-certificate", certificate.as_str(), "--tls-key", key.as_str()]);
    let port = url.rsplit(':').next().expect("has a port");
    let url = format!("https://localhost:{port}");
    let trusted = semel_says(&format!("--store {url} --ca-file {certificate} stats --json")).json();
    assert_eq!(trusted["records"], 0);
    let error = semel_says(&format!("--store {url} stats")).failed();
    for part in [&*format!("the certificate of localhost:{port} is not trusted"), "--ca-file"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let error = semel_says(&format!("--store http://localhost:{port} stats")).failed();
    assert!(error.contains("gave no HTTP answer") && error.contains("or https://"), "{error}");
    drop(program);
}
