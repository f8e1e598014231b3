//! Lost replies over real sockets: harmless if they are taken for what they are, and found out if they are not.

use std::sync::Arc;
use std::time::Duration;

use semel::ErrorKind;
use semel::store::{MemoryStore, Store, Swap};
use semel_testkit::history::concurrent_history;
use semel_testkit::lossy::{LossyProxy, lost_at_random, lost_replies};
use semel_testkit::sample;
use tokio::time::Instant;

use crate::wire::{Wire, serve};
use crate::wrong::{Mistaken, Taken};

/// A store, a proxy before its server, and the way through it.
async fn open() -> (Arc<dyn Store>, LossyProxy, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let proxy = LossyProxy::start(serve(Arc::clone(&store)).await).await.unwrap();
    let through = Arc::new(Wire::new(proxy.address()));
    (store, proxy, through)
}

fn mistaken(store: Arc<dyn Store>, taken: Taken) -> Arc<dyn Store> {
    Arc::new(Mistaken::new(store, taken))
}

fn swap() -> Swap {
    let write = sample::running(&sample::ask(&sample::key("lossy").unwrap())).unwrap();
    Swap { expected: None, next: write.next, keep: write.keep }
}

async fn is_there(store: &dyn Store, swap: &Swap) -> bool {
    store.load(vec![swap.id()]).await.unwrap().record().unwrap().is_some()
}

#[tokio::test]
async fn a_lost_answer_is_lost_after_the_server_did_what_it_was_asked() {
    let (store, proxy, through) = open().await;
    for round in 1..=20 {
        let swap = swap();
        proxy.lose_next_answer();
        let error = through.swap([swap.clone()].into()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unknown);
        assert!(is_there(&*store, &swap).await);
        assert_eq!((proxy.lost(), proxy.dropped()), (round, 0));
        through.load(Vec::new()).await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_request_never_reaches_the_server() {
    let (store, proxy, through) = open().await;
    let swap = swap();
    proxy.drop_next_request();
    let error = through.swap([swap.clone()].into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    assert!(!is_there(&*store, &swap).await);
    assert_eq!((proxy.lost(), proxy.dropped(), proxy.forwarded()), (0, 1, 0));
}

#[tokio::test]
async fn a_delayed_request_arrives_later() {
    let (_store, proxy, through) = open().await;
    through.load(Vec::new()).await.unwrap();
    let (delay, asked_at) = (Duration::from_millis(50), Instant::now());
    proxy.delay_next_request(delay);
    through.load(Vec::new()).await.unwrap();
    assert!(asked_at.elapsed() >= delay);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lost_replies_of_every_command_are_harmless() {
    let (store, proxy, through) = open().await;
    let report = lost_replies(&through, &store, &proxy).await.unwrap();
    println!("{report}");
    assert!(report.are_harmless(), "{report}");
    for tried in report.tried {
        let reads = ["get", "scan", "sweep"].contains(&tried.command);
        // Every answer in turn is lost: of commands that read first, that of the read too.
        let lost_reads = match tried.command {
            "resolve as done" | "resolve as released" => tried.lost.div_ceil(2),
            "claim_all" => tried.lost.div_ceil(4),
            _ => 0,
        };
        let swaps = if reads { 0 } else { tried.lost - lost_reads };
        assert_eq!(tried.landed, swaps, "{tried:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_that_is_taken_for_nothing_is_found_out() {
    let (store, proxy, through) = open().await;
    let through = mistaken(through, Taken::ForNothing);
    let report = lost_replies(&through, &store, &proxy).await.unwrap();
    println!("{report}");
    for command in [
        "swap",
        "claim",
        "complete",
        "release",
        "renew",
        "step",
        "record_once",
        "complete_all",
        "release_all",
        "renew_all",
    ] {
        assert!(
            report.faults.iter().any(|fault| fault.starts_with(command)),
            "{command} was not found:\n{report}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_whose_replies_are_lost_at_random_lose_nothing() {
    let (store, proxy, through) = open().await;
    let losses = lost_at_random(&through, &store, &proxy, 1, (2_000, 0.05)).await.unwrap();
    println!("{losses}; {} answers lost of {}", proxy.lost(), proxy.forwarded());
    assert!(losses.are_none() && losses.acknowledged >= 2_000, "{losses}");
    assert!(proxy.lost() > 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_takes_a_lost_reply_for_nothing_wedges_its_key() {
    let (store, proxy, through) = open().await;
    let through = mistaken(through, Taken::ForNothing);
    let losses = lost_at_random(&through, &store, &proxy, 1, (1_000, 0.05)).await.unwrap();
    println!("{losses}");
    assert!(losses.wedged > 0, "{losses}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_writes_over_whatever_is_there_grants_twice() {
    let (store, proxy, through) = open().await;
    let through = mistaken(through, Taken::ForAnotherTry);
    let losses = lost_at_random(&through, &store, &proxy, 1, (4_000, 0.10)).await.unwrap();
    println!("{losses}");
    assert!(losses.doubled > 0, "{losses}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_over_a_bad_network_is_linearizable() {
    let (_store, proxy, _) = open().await;
    let client = || Arc::new(Wire::new(proxy.address())) as Arc<dyn Store>;
    let clients: Vec<_> = (0..16).map(|_| client()).collect();
    proxy.lose_answers(0.02, 1);
    let report = concurrent_history(&clients, 1, 1_000).await;
    println!("{report}");
    assert!(report.is_linearizable(), "{report}");
    assert!(report.lost > 0);
}
