//! Nothing is left of a server, however the process that started it ends.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use test_services::{AppendFsync, Postgres, Redis};

/// Set in the process that is killed.
const HOLDER: &str = "SEMEL_TEST_HOLDER";

fn answers(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

fn is_left(folder: &Path, port: u16) -> bool {
    folder.exists() || answers(port)
}

#[test]
fn nothing_is_left_of_a_dropped_server() {
    let postgres = Postgres::start().unwrap();
    let redis = Redis::start(AppendFsync::Always).unwrap();
    let mut killed = Postgres::start_in_memory(&[]).unwrap();
    killed.kill().unwrap();
    let places = [
        (postgres.folder().to_owned(), postgres.port()),
        (redis.folder().to_owned(), redis.port()),
        (killed.folder().to_owned(), killed.port()),
    ];
    let segment = segment_of(killed.folder());
    assert!(is_segment(&segment), "a killed PostgreSQL leaves its segment {segment}");
    for (folder, port) in &places[..2] {
        assert!(folder.exists() && answers(*port));
    }
    drop((postgres, redis, killed));
    for (folder, port) in &places {
        assert!(!is_left(folder, *port), "{} or port {port} is left", folder.display());
    }
    assert!(!is_segment(&segment), "the segment {segment} is left");
}

#[test]
fn nothing_is_left_when_whoever_started_the_servers_is_killed() {
    if std::env::var_os(HOLDER).is_some() {
        return hold();
    }
    let mut holder = holder("nothing_is_left_when_whoever_started_the_servers_is_killed");
    let places = places(&mut holder);
    assert_eq!(places.len(), 2);
    for (folder, port) in &places {
        assert!(Path::new(folder).exists() && answers(*port), "{folder} is not there yet");
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
    for (folder, port) in places {
        let is_gone = (0..1_500).any(|_| {
            let is_gone = !is_left(Path::new(&folder), port);
            if !is_gone {
                std::thread::sleep(Duration::from_millis(10));
            }
            is_gone
        });
        assert!(is_gone, "{folder} or port {port} is left");
    }
}

/// Starts this program again, to play the part that is killed.
fn holder(test: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("gone::{test}"), "--nocapture"]).env(HOLDER, "yes");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Waits for ever, or for the end of its input, with servers that run.
fn hold() {
    let postgres = Postgres::start().unwrap();
    let redis = Redis::start(AppendFsync::Always).unwrap();
    println!("\nholds {} {}", postgres.folder().display(), postgres.port());
    println!("holds {} {}", redis.folder().display(), redis.port());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn places(holder: &mut Child) -> Vec<(String, u16)> {
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let held = lines.map_while(Result::ok).filter_map(|line| {
        let (folder, port) = line.strip_prefix("holds ")?.split_once(' ')?;
        Some((folder.to_owned(), port.parse().ok()?))
    });
    held.take(2).collect()
}

/// The id of PostgreSQL's segment of shared memory.
fn segment_of(folder: &Path) -> String {
    let pid_file = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    let line = pid_file.lines().nth(6).unwrap();
    line.split_whitespace().nth(1).unwrap().to_owned()
}

fn is_segment(id: &str) -> bool {
    let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    segments.lines().any(|line| line.split_whitespace().nth(1) == Some(id))
}
