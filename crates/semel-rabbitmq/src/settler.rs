//! What was delivered on one connection and is not settled, and the one task that settles it.
//!
//! RabbitMQ ends a channel on which a delivery is settled twice, and an acknowledgement of many settles everything up to its
//! number. So what is on the list and what is sent must never differ: an entry leaves the list together with the word that
//! settles it joining the queue of the one task that sends, under one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::Channel;
use lapin::options::{BasicAckOptions, BasicNackOptions};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// What stands of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    InWork,
    /// To be given back when its delay is over.
    GivenBack,
}

/// One word to the broker.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    /// This one is processed.
    Acknowledge(u64),
    /// Everything up to this one is.
    AcknowledgeUpTo(u64),
    /// This one is to be delivered again.
    GiveBack(u64),
}

/// What the task that sends has to do, one after the other.
enum Errand {
    Send(Word),
    /// Everything before this is sent: tell.
    Tell(oneshot::Sender<()>),
}

/// The list, and the queue of the task that sends.
struct Ledger {
    unsettled: BTreeMap<u64, Standing>,
    errands: mpsc::UnboundedSender<Errand>,
}

/// Settles the deliveries of one channel. Dropped, it ends whatever still waits.
pub(crate) struct Settler {
    ledger: Arc<Mutex<Ledger>>,
    tasks: JoinSet<()>,
}

impl Settler {
    pub(crate) fn start(channel: Channel) -> Self {
        let (errands, to_do) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(send(channel, to_do));
        let ledger = Ledger { unsettled: BTreeMap::new(), errands };
        Self { ledger: Arc::new(Mutex::new(ledger)), tasks }
    }

    pub(crate) fn delivered(&self, number: u64) {
        locked(&self.ledger).unsettled.insert(number, Standing::InWork);
    }

    /// These are processed. Numbers that are not in work are passed over. Ready when the word is sent; an error if it
    /// cannot be.
    pub(crate) fn acknowledge(&self, numbers: impl Iterator<Item = u64>) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        let mut ledger = locked(&self.ledger);
        let words = ledger.acknowledged(numbers);
        for errand in words.into_iter().map(Errand::Send).chain([Errand::Tell(tell)]) {
            let _ = ledger.errands.send(errand);
        }
        told
    }

    /// These are to be delivered again after a while. The broker has no delays, so they wait here.
    pub(crate) fn give_back(&mut self, numbers: impl Iterator<Item = u64>, after: Duration) {
        let given_back = locked(&self.ledger).given_back(numbers);
        if after.is_zero() {
            return locked(&self.ledger).send_back(&given_back);
        }
        while self.tasks.try_join_next().is_some() {}
        let ledger = Arc::clone(&self.ledger);
        self.tasks.spawn(async move {
            tokio::time::sleep(after).await;
            locked(&ledger).send_back(&given_back);
        });
    }
}

impl Ledger {
    fn acknowledged(&mut self, numbers: impl Iterator<Item = u64>) -> Vec<Word> {
        let in_work = |number: &u64| self.unsettled.get(number) == Some(&Standing::InWork);
        let numbers: BTreeSet<u64> = numbers.filter(in_work).collect();
        // From the oldest on without a gap. What is not on the list is either settled or newer than all that is.
        let run: Vec<u64> =
            self.unsettled.keys().copied().take_while(|number| numbers.contains(number)).collect();
        self.unsettled.retain(|number, _| !numbers.contains(number));
        let up_to = run.last().map(|last| Word::AcknowledgeUpTo(*last));
        let others =
            numbers.iter().filter(|number| !run.contains(number)).map(|number| Word::Acknowledge(*number));
        up_to.into_iter().chain(others).collect()
    }

    /// Those of the numbers that were in work until now.
    fn given_back(&mut self, numbers: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut given_back = Vec::new();
        for number in numbers {
            if let Some(standing @ Standing::InWork) = self.unsettled.get_mut(&number) {
                *standing = Standing::GivenBack;
                given_back.push(number);
            }
        }
        given_back
    }

    fn send_back(&mut self, numbers: &[u64]) {
        for number in numbers {
            if self.unsettled.remove(number).is_some() {
                let _ = self.errands.send(Errand::Send(Word::GiveBack(*number)));
            }
        }
    }
}

fn locked(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends word after word, until one cannot be sent: then the channel is gone, and everything on it will be delivered again.
async fn send(channel: Channel, mut errands: mpsc::UnboundedReceiver<Errand>) {
    while let Some(errand) = errands.recv().await {
        let word = match errand {
            Errand::Send(word) => word,
            Errand::Tell(tell) => {
                let _ = tell.send(());
                continue;
            }
        };
        let sent = match word {
            Word::Acknowledge(number) => channel.basic_ack(number, BasicAckOptions { multiple: false }).await,
            Word::AcknowledgeUpTo(number) => {
                channel.basic_ack(number, BasicAckOptions { multiple: true }).await
            }
            Word::GiveBack(number) => {
                channel.basic_nack(number, BasicNackOptions { multiple: false, requeue: true }).await
            }
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "the channel to RabbitMQ is gone");
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(numbers: &[u64]) -> (Ledger, mpsc::UnboundedReceiver<Errand>) {
        let (errands, to_do) = mpsc::unbounded_channel();
        let unsettled = numbers.iter().map(|number| (*number, Standing::InWork)).collect();
        (Ledger { unsettled, errands }, to_do)
    }

    #[test]
    fn many_are_acknowledged_by_one_word_only_where_nothing_else_is_below() {
        let (mut ledger, _) = ledger(&[1, 2, 3, 5, 6]);
        let words = ledger.acknowledged([2, 1, 5].into_iter());
        assert_eq!(words, [Word::AcknowledgeUpTo(2), Word::Acknowledge(5)]);
        // 3 is still in work: 6 goes alone, although 4 and 5 are settled.
        assert_eq!(ledger.acknowledged([6].into_iter()), [Word::Acknowledge(6)]);
        assert_eq!(ledger.acknowledged([3].into_iter()), [Word::AcknowledgeUpTo(3)]);
        assert_eq!(ledger.acknowledged([3, 7].into_iter()), [], "settled, and unknown");
    }

    #[test]
    fn what_waits_to_be_given_back_is_never_acknowledged_with_others() {
        let (mut ledger, mut to_do) = ledger(&[1, 2, 3]);
        assert_eq!(ledger.given_back([1, 1, 9].into_iter()), [1]);
        assert_eq!(ledger.acknowledged([1, 2].into_iter()), [Word::Acknowledge(2)]);
        ledger.send_back(&[1]);
        ledger.send_back(&[1]);
        assert!(matches!(to_do.try_recv(), Ok(Errand::Send(Word::GiveBack(1)))));
        assert!(to_do.try_recv().is_err());
        assert_eq!(ledger.acknowledged([3].into_iter()), [Word::AcknowledgeUpTo(3)]);
    }
}
