//! Answers are watched for as long as they last, and no longer.

use super::*;

const SPAN: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn an_answer_is_watched_for_as_long_as_it_lasts_however_many_come_after_it() {
    let stalls = Stalls::new();
    let unread = stalls.watch();
    tokio::time::advance(SPAN * 2).await;
    let others: Vec<_> = (0..100)
        .map(|_| {
            let answer = stalls.watch();
            answer.asked_for_more();
            answer
        })
        .collect();
    assert!(stalls.is_any_older_than(SPAN));
    unread.asked_for_more();
    assert!(!stalls.is_any_older_than(SPAN));
    drop(others);
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_over_take_no_room() {
    let stalls = Stalls::new();
    for _ in 0..10_000 {
        drop(stalls.watch());
    }
    let watched = stalls.answers.lock().unwrap().len();
    assert!(watched < 100, "{watched} are watched, and none is left");
}
