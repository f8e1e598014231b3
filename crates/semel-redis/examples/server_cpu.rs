//! How much of the server's CPU a claim and a complete take, many at a time.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a measurement that cannot go on has no figure to show"
)]

use semel::{Claim, Decision, Outcome, Semel};
use semel_redis::RedisStore;
use semel_testkit::sample;
use test_services::{AppendFsync, Redis};
use tokio::task::JoinSet;

const CALLERS: usize = 256;
const CYCLES: usize = 80;

/// The CPU time of the server's main thread, in microseconds.
fn cpu_micros(server: &Redis) -> f64 {
    let info = server.ask(&["INFO", "cpu"]).unwrap().concat();
    let seconds = |name: &str| {
        let value = info.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        value.trim().parse::<f64>().unwrap()
    };
    1e6 * (seconds("used_cpu_user_main_thread:") + seconds("used_cpu_sys_main_thread:"))
}

async fn cycles(semel: &Semel) {
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let semel = semel.clone();
        callers.spawn(async move {
            for _ in 0..CYCLES {
                let key = sample::key("cpu").unwrap();
                match semel.claim(Claim::new(&key)).await.unwrap() {
                    Decision::Run(permit) => {
                        permit.complete(Outcome::success(vec![7; 150])).await.unwrap();
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
    }
    callers.join_all().await;
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let semel = Semel::builder(store).no_sweep().build().unwrap();
    cycles(&semel).await;
    let mut found = Vec::new();
    for _ in 0..7 {
        let before = cpu_micros(&server);
        cycles(&semel).await;
        let cycles = f64::from(u32::try_from(CALLERS * CYCLES).unwrap());
        found.push((cpu_micros(&server) - before) / cycles);
    }
    found.sort_by(f64::total_cmp);
    println!("server CPU a cycle: {:.1} µs (best {:.1}, worst {:.1})", found[3], found[0], found[6]);
}
