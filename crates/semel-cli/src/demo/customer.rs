//! A client that pays once, whatever it takes: it asks again with the same key until it has an answer.

use std::net::SocketAddr;
use std::time::Duration;

use http::StatusCode;

use super::dice::{Dice, Patience};
use super::wire::{Answer, Ask, Heard, send};

/// What every payment is about.
const CENTS: u64 = 4_200;
/// Before a client asks again, if nobody says how long to wait.
const PAUSE: Duration = Duration::from_millis(30);
/// Nobody asks for ever.
const TRIES_MAX: u64 = 30;

/// What clients counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Payments that were wanted.
    pub(super) wanted: u64,
    /// Requests for them.
    pub(super) sent: u64,
    /// Requests that repeated an earlier one.
    pub(super) retried: u64,
    /// Times that a client left before it was answered.
    pub(super) hung_up: u64,
    /// Answers that were sent, and lost on their way.
    pub(super) lost: u64,
    /// Connections that the other side dropped.
    pub(super) dropped: u64,
    /// 201, from a run.
    pub(super) paid: u64,
    /// 201, from the store.
    pub(super) replayed: u64,
    /// 409: it still runs.
    pub(super) told_to_wait: u64,
    /// 409: nobody knows how it ended, and a person must look.
    pub(super) held: u64,
    /// 5xx.
    pub(super) failed: u64,
    /// Keys that were used again for another amount.
    pub(super) reused: u64,
    /// Of those, how many were refused.
    pub(super) refused: u64,
    /// Payments that were never answered.
    pub(super) unanswered: u64,
}

/// Pays, and says what it took.
pub(super) async fn pay(to: SocketAddr, payment: u64, dice: Dice) -> Tally {
    let mut tally = Tally { wanted: 1, ..Tally::default() };
    let settled = ask_until_told(to, &Ask { payment, cents: CENTS }, dice, &mut tally).await;
    if !settled {
        tally.unanswered = 1;
    }
    if settled && dice.reuses_key(payment) {
        tally.reused = 1;
        let other = Ask { payment, cents: CENTS.saturating_add(1) };
        let answer = send(to, &other, Patience::Waits).await;
        let refused = matches!(&answer, Heard::Answer(answer) if answer.status.is_client_error());
        tally.refused = u64::from(refused);
    }
    tally
}

/// Whether there was an answer that ends the matter.
async fn ask_until_told(to: SocketAddr, ask: &Ask, dice: Dice, tally: &mut Tally) -> bool {
    for attempt in 1..=TRIES_MAX {
        count(&mut tally.sent);
        if attempt > 1 {
            count(&mut tally.retried);
        }
        let pause = match send(to, ask, dice.patience(ask.payment, attempt)).await {
            Heard::Answer(answer) => match noted(&answer, tally) {
                Next::Done => return true,
                Next::AskAgain => answer.retry_after.unwrap_or(PAUSE),
            },
            Heard::HungUp => noting(&mut tally.hung_up),
            Heard::Lost => noting(&mut tally.lost),
            Heard::Nothing => noting(&mut tally.dropped),
        };
        tokio::time::sleep(pause).await;
    }
    false
}

enum Next {
    Done,
    AskAgain,
}

fn noted(answer: &Answer, tally: &mut Tally) -> Next {
    let (counter, next) = match (answer.status, answer.code.as_deref()) {
        (StatusCode::CREATED, _) if answer.replayed => (&mut tally.replayed, Next::Done),
        (StatusCode::CREATED, _) => (&mut tally.paid, Next::Done),
        (StatusCode::CONFLICT, Some("outcome_held")) => (&mut tally.held, Next::Done),
        (StatusCode::CONFLICT, _) => (&mut tally.told_to_wait, Next::AskAgain),
        _ => (&mut tally.failed, Next::AskAgain),
    };
    count(counter);
    next
}

fn noting(counter: &mut u64) -> Duration {
    count(counter);
    PAUSE
}

fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}

impl Tally {
    /// The tally of several clients.
    pub(super) fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.wanted, other.wanted),
            (&mut self.sent, other.sent),
            (&mut self.retried, other.retried),
            (&mut self.hung_up, other.hung_up),
            (&mut self.lost, other.lost),
            (&mut self.dropped, other.dropped),
            (&mut self.paid, other.paid),
            (&mut self.replayed, other.replayed),
            (&mut self.told_to_wait, other.told_to_wait),
            (&mut self.held, other.held),
            (&mut self.failed, other.failed),
            (&mut self.reused, other.reused),
            (&mut self.refused, other.refused),
            (&mut self.unanswered, other.unanswered),
        ] {
            *mine = mine.saturating_add(theirs);
        }
    }
}
