//! Effects that commit together with their record: swaps inside a transaction of the application's own.

use std::future::Future;
use std::sync::Arc;

use semel::clock::Timestamp;
use semel::machine::Ruling;
use semel::machine::offset::{Move, Moved};
use semel::machine::settle::Completed;
use semel::record::Record;
use semel::store::{Swap, SwapReply};
use semel::{Apart, Claim, Error, ErrorKind, Key, Outcome, Permit, RecordId, RecordedOnce, Result, Semel};
use tokio_postgres::types::{ToSql, Type};

use crate::error::{Sent, error};
use crate::row;
use crate::statement::{self, parameter_types};
use crate::told::{Told, What};
use crate::value::Value;

/// How often an ask starts over because somebody else wrote the record. Each time somebody else got on.
const RACES_MAX: usize = 64;

/// Makes the transaction fail, whatever the application does next: a lost permit must not commit its effect.
pub(crate) const REFUSE: &str =
    "DO $$ BEGIN RAISE EXCEPTION 'semel: the permit is lost; this transaction must not commit'; END $$";

/// A transaction that swaps can ride in: `&tokio_postgres::Transaction`, or `&mut sqlx::Transaction` with the feature
/// `sqlx`.
#[expect(private_bounds, reason = "only this crate's own statements are sent")]
pub trait Transaction: Carrier + Send {}
impl<T: Carrier + Send> Transaction for T {}

/// What a transaction of a driver can do for us.
pub(crate) trait Carrier {
    /// Sends one of semel's own statements.
    fn ask(&mut self, ask: Asked<'_>) -> impl Future<Output = Result<Option<Told>>> + Send;
    /// Makes the transaction fail, whatever comes next.
    fn refuse(&mut self) -> impl Future<Output = ()> + Send;
}

/// What is asked inside a transaction.
#[derive(Clone, Copy)]
pub(crate) enum Asked<'a> {
    /// To swap one record.
    Swap(&'a Swap),
    /// To look at one.
    Look(RecordId),
}

impl Asked<'_> {
    /// The statement, and its values.
    pub(crate) fn question(&self) -> (String, Vec<Value<'_>>, Vec<Type>) {
        match self {
            Self::Swap(swap) => {
                let text =
                    if swap.expected.is_some() { statement::update_one() } else { statement::insert_one() };
                (text, row::values(swap).into(), parameter_types())
            }
            Self::Look(id) => (statement::look(), vec![Value::Digest(*id.as_bytes())], vec![Type::BYTEA]),
        }
    }
}

/// Ends a run inside the application's own transaction.
pub trait CompleteIn {
    /// Stores the outcome in the transaction: it and whatever else the transaction wrote commit together, or not at
    /// all. The run is over once the transaction has committed, and goes on if it is rolled back.
    ///
    /// If the permit is lost, so is the transaction: it cannot commit any more. Make this the last statement before the
    /// commit: until then, others who need this record wait.
    fn complete_in<T: Transaction>(
        &self,
        transaction: T,
        outcome: Outcome,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// Records an outcome inside the application's own transaction.
pub trait RecordOnceIn {
    /// Stores an outcome that is already there, unless the key is taken; with whatever else the transaction wrote, or
    /// not at all. Anything but [`Recorded`](RecordedOnce::Recorded) means that this transaction's effect is a second
    /// one: roll it back.
    fn record_once_in<T: Transaction>(
        &self,
        transaction: T,
        claim: Claim,
        outcome: Outcome,
    ) -> impl Future<Output = Result<RecordedOnce>> + Send;
}

/// Moves an offset inside the application's own transaction.
pub trait MoveOffsetIn {
    /// Moves the offset together with whatever else the transaction wrote, or not at all. If somebody else reads the
    /// stream now, the transaction cannot commit any more.
    fn move_offset_in<T: Transaction>(
        &self,
        transaction: T,
        key: &Key,
        wanted: Move,
    ) -> impl Future<Output = Result<Moved>> + Send;
}

impl MoveOffsetIn for Semel {
    async fn move_offset_in<T: Transaction>(
        &self,
        mut transaction: T,
        key: &Key,
        wanted: Move,
    ) -> Result<Moved> {
        let moved = carry(&mut transaction, &self.move_offset_apart(key, wanted)).await?.answer;
        if !matches!(moved, Moved::Moved(_) | Moved::Behind(_)) {
            transaction.refuse().await;
        }
        Ok(moved)
    }
}

impl CompleteIn for Permit {
    async fn complete_in<T: Transaction>(&self, mut transaction: T, outcome: Outcome) -> Result<()> {
        // A run that no store knows of has no record to complete.
        let Some(apart) = self.complete_apart(outcome) else { return Ok(()) };
        match carry(&mut transaction, &apart).await?.answer {
            Completed::Done => Ok(()),
            Completed::Lost => {
                transaction.refuse().await;
                Err(self.lost_apart())
            }
        }
    }
}

impl RecordOnceIn for Semel {
    async fn record_once_in<T: Transaction>(
        &self,
        mut transaction: T,
        claim: Claim,
        outcome: Outcome,
    ) -> Result<RecordedOnce> {
        let apart = self.record_once_apart(&claim, outcome)?;
        let Carried { answer, record, now } = carry(&mut transaction, &apart).await?;
        self.recorded_apart(answer, record, now)
    }
}

struct Carried<A> {
    answer: A,
    record: Option<Arc<Record>>,
    now: Timestamp,
}

/// Rules on what is found, writes what the ruling says, and starts over if somebody else wrote first.
async fn carry<T: Transaction, A>(transaction: &mut T, apart: &Apart<A>) -> Result<Carried<A>> {
    let mut found = apart.known().cloned();
    let mut now = found.as_ref().map_or_else(Timestamp::default, |record| record.changed_at);
    let mut is_guess = true;
    for _ in 0..RACES_MAX {
        let Ruling { answer, write } = apart.rule(found.as_deref(), now);
        let told = match write {
            None if !is_guess => return Ok(Carried { answer, record: found, now }),
            // What was only guessed has to be seen before it may be answered.
            None => transaction.ask(Asked::Look(apart.key().id())).await?,
            Some(write) => {
                let expected = found.as_ref().map(|record| record.version);
                let swap = Swap { expected, next: write.next, keep: write.keep };
                let told = transaction.ask(Asked::Swap(&swap)).await?;
                if let Some(told @ Told { what: What::Won(_), now, .. }) = told {
                    let SwapReply::Swapped(record) = told.reply(swap) else { continue };
                    return Ok(Carried { answer, record: Some(record), now });
                }
                told
            }
        };
        // No answer is a lost race: the next try sees who won.
        if let Some(Told { now: at, what: What::Lost(current), .. }) = told {
            (found, now, is_guess) = (current, at, false);
        }
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        "a record is written by others all the time; roll back and ask again",
    ))
}

impl Carrier for &tokio_postgres::Transaction<'_> {
    async fn ask(&mut self, ask: Asked<'_>) -> Result<Option<Told>> {
        let (text, values, types) = ask.question();
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|value| value as &(dyn ToSql + Sync)).zip(types).collect();
        let rows =
            self.query_typed(&text, &parameters).await.map_err(|failed| error(failed, Sent::Perhaps))?;
        rows.first().map(Told::read).transpose()
    }

    async fn refuse(&mut self) {
        // The refusal is an error by design; if the line is gone, so is the transaction.
        drop(self.batch_execute(REFUSE).await);
    }
}
