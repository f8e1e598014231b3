//! Effects that commit together with their record: swaps inside a transaction of the application's own.

use std::future::Future;

use semel::machine::offset::{Move, Moved};
use semel::machine::settle::Completed;
use semel::store::{Answer, Swap};
use semel::swap_loop::{Heard, Next, Settled};
use semel::{
    BoxedSwapLoop, Claim, Error, ErrorKind, Key, Outcome, Permit, RecordId, RecordedOnce, Result, Semel,
};
use tokio_postgres::types::{ToSql, Type};

use crate::error::{Sent, error};
use crate::row;
use crate::statement::{INSERT_ONE, LOOK, PARAMETER_TYPES, UPDATE_ONE};
use crate::swap_answer::{SwapAnswer, SwapResult};
use crate::value::Value;

/// Makes the transaction fail, whatever the application does next: a lost permit must not commit its effect.
pub(crate) const REFUSE: &str =
    "DO $$ BEGIN RAISE EXCEPTION 'semel: the permit is lost; this transaction must not commit'; END $$";

/// A transaction that swaps can ride in.
///
/// - `&tokio_postgres::Transaction`: nothing is prepared, so it also works behind a pooler in transaction mode.
/// - [`statements.on(&transaction)`](crate::StatementCache::on): the same, with statements prepared once a connection.
/// - `&mut sqlx::Transaction`, with the feature `sqlx-0_8` or `sqlx-0_9`, whichever the application uses. The statements
///   are prepared and kept by sqlx if the connection keeps any of the application's own; behind a pooler in transaction
///   mode, turn that off as for all statements: `statement-cache-capacity=0` in the URL.
#[expect(private_bounds, reason = "only this crate's own statements are sent")]
pub trait Transaction: Carrier + Send {}
impl<T: Carrier + Send> Transaction for T {}

/// What a transaction of a driver can do for us.
pub(crate) trait Carrier {
    /// Sends one of semel's own statements.
    fn ask(&mut self, ask: Asked<'_>) -> impl Future<Output = Result<Option<SwapAnswer>>> + Send;
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
    /// The statement, its values and their types.
    pub(crate) fn question(&self) -> (&'static str, Vec<Value<'_>>, &'static [Type]) {
        match self {
            Self::Swap(swap) => {
                let text = if swap.expected.is_some() { &*UPDATE_ONE } else { &*INSERT_ONE };
                (text, row::values(swap).into(), &PARAMETER_TYPES)
            }
            Self::Look(id) => (&LOOK, vec![Value::Digest(*id.as_bytes())], &[Type::BYTEA]),
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
    /// Moves the offset together with whatever else the transaction wrote, or not at all. If another consumer reads
    /// the stream now, the transaction cannot commit any more.
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
        let moved = drive(&mut transaction, self.move_offset_loop(key, wanted)).await?.answer;
        if !matches!(moved, Moved::Moved(_) | Moved::Behind(_)) {
            transaction.refuse().await;
        }
        Ok(moved)
    }
}

impl CompleteIn for Permit {
    async fn complete_in<T: Transaction>(&self, mut transaction: T, outcome: Outcome) -> Result<()> {
        // A run that no store knows of has no record to complete.
        let Some(swap_loop) = self.complete_loop(outcome) else { return Ok(()) };
        match drive(&mut transaction, swap_loop).await?.answer {
            Completed::Done => Ok(()),
            Completed::Lost => {
                transaction.refuse().await;
                Err(self.report_lost("the outcome was not stored, and the transaction cannot commit"))
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
        let swap_loop = self.record_once_loop(&claim, outcome)?;
        let recorded = self.recorded(drive(&mut transaction, swap_loop).await?)?;
        if let RecordedOnce::Replay(replay) = &recorded {
            // The store shows an outcome only if the synchronous standby has it; a transaction that is under way cannot wait
            // for that.
            self.get(&replay.record().key).await?;
        }
        Ok(recorded)
    }
}

/// Drives an ask with statements of the transaction. A statement that fails is the end of both: the server takes no
/// other one until the transaction is rolled back.
async fn drive<T: Transaction, A>(
    transaction: &mut T,
    mut swap_loop: BoxedSwapLoop<A>,
) -> Result<Settled<A>> {
    loop {
        let heard = match swap_loop.next()? {
            Next::Answer(settled) => return Ok(settled),
            Next::Load(id) => match transaction.ask(Asked::Look(id)).await? {
                Some(SwapAnswer { now, result: SwapResult::Lost(found), .. }) => {
                    Heard::Loaded(Ok(Answer::new(now, found)))
                }
                Some(SwapAnswer { result: SwapResult::Won(_), .. }) | None => return Err(no_answer()),
            },
            Next::Swap(swap) => match transaction.ask(Asked::Swap(&swap)).await? {
                Some(answer) => Heard::Swapped(Ok(Answer::new(answer.now, answer.reply(swap)))),
                None => Heard::LostRace,
            },
            Next::Pause(pause) => {
                tokio::time::sleep(pause).await;
                continue;
            }
        };
        swap_loop.hear(heard)?;
    }
}

fn no_answer() -> Error {
    Error::new(ErrorKind::Unavailable, "PostgreSQL gave no answer; roll back and ask again")
}

impl Carrier for &tokio_postgres::Transaction<'_> {
    async fn ask(&mut self, ask: Asked<'_>) -> Result<Option<SwapAnswer>> {
        let (text, values, types) = ask.question();
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|value| value as &(dyn ToSql + Sync)).zip(types.iter().cloned()).collect();
        let rows =
            self.query_typed(text, &parameters).await.map_err(|failed| error(failed, Sent::Perhaps))?;
        rows.first().map(SwapAnswer::read).transpose()
    }

    async fn refuse(&mut self) {
        // The refusal is an error by design; if the line is gone, so is the transaction.
        drop(self.batch_execute(REFUSE).await);
    }
}
