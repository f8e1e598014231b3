//! A connection that comes back by itself, and on which every ask ends in time.

use std::sync::Arc;
use std::time::Duration;

use semel::{Error, ErrorKind, Result};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::{AskFailure, ends_session, is_entangled, no_reply};
use crate::servers::{ServerIdentity, Servers};
use crate::session::{Purpose, Question, Session};

/// How long a failure to connect stands for all callers: a crowd must not try one after the other.
const FAILURE_STANDS: Duration = Duration::from_millis(100);

/// How often a statement that got entangled with others' locks is sent again.
const ENTANGLED_TRIES_MAX: usize = 8;

/// One connection at a time, made when it is needed.
pub(crate) struct Reconnecting {
    servers: Arc<Servers>,
    purpose: Purpose,
    /// How long an ask may take.
    within: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    session: Option<Arc<Session>>,
    failure: Option<(Instant, ErrorKind, String)>,
}

/// The rows of an answer, and the server that gave it.
pub(crate) struct Answered {
    pub(crate) rows: Vec<Row>,
    pub(crate) server: Option<ServerIdentity>,
}

impl Reconnecting {
    pub(crate) fn new(servers: Arc<Servers>, purpose: Purpose, within: Duration) -> Self {
        Self { servers, purpose, within, state: Mutex::default() }
    }

    /// The session, or a new one if there is none that lives. An error means that nothing was sent.
    pub(crate) async fn session(&self) -> Result<Arc<Session>> {
        let mut state = self.state.lock().await;
        let is_usable =
            |session: &&Arc<Session>| !session.is_closed() && self.servers.is_current(session.server);
        if let Some(session) = state.session.as_ref().filter(is_usable) {
            return Ok(Arc::clone(session));
        }
        if let Some((at, kind, message)) = &state.failure
            && at.elapsed() < FAILURE_STANDS
        {
            return Err(Error::new(*kind, message));
        }
        match self.open().await {
            Ok(session) => {
                let session = Arc::new(session);
                *state = State { session: Some(Arc::clone(&session)), failure: None };
                Ok(session)
            }
            Err(error) => {
                *state =
                    State { session: None, failure: Some((Instant::now(), error.kind(), error.to_string())) };
                Err(error)
            }
        }
    }

    /// The session, if there is one that lives and no other is being made.
    pub(crate) async fn open_session(&self) -> Option<Arc<Session>> {
        self.state.lock().await.session.clone().filter(|session| !session.is_closed())
    }

    /// A new session. Connecting has its own time limit; checking the server has that of an ask.
    async fn open(&self) -> Result<Session> {
        let config = &self.servers.config;
        let within = config.connect_within.saturating_add(config.reply_within);
        timeout(within, Session::open(&self.servers, self.purpose)).await.unwrap_or_else(|_| {
            let message = format!(
                "PostgreSQL did not answer within {within:?} after connecting; nothing was asked; check that it runs"
            );
            Err(Error::new(ErrorKind::Unavailable, message))
        })
    }

    /// Sends a statement, and again if the server undid it only because of others' locks.
    pub(crate) async fn ask(
        &self,
        question: Question<'_>,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Answered> {
        let mut tries = 0..ENTANGLED_TRIES_MAX;
        let mut until = None;
        loop {
            let session = self.session().await?;
            // Counted from when the statement is first sent: until then, nothing can have happened.
            let now = Instant::now();
            let until = *until.get_or_insert_with(|| now.checked_add(self.within).unwrap_or(now));
            match timeout_at(until, session.ask(question, parameters)).await {
                Ok(Ok(rows)) => return Ok(Answered { rows, server: session.server }),
                Ok(Err(AskFailure::Driver(failed))) if is_entangled(&failed) && tries.next().is_some() => {}
                Ok(Err(failure)) => {
                    if matches!(&failure, AskFailure::Driver(failed) if ends_session(failed)) {
                        session.wire().give_up();
                    }
                    return Err(failure.into());
                }
                Err(_) => {
                    // The server goes on with it; its reply would be the answer to no ask any more.
                    session.wire().give_up();
                    return Err(no_reply(self.within, question.writes()));
                }
            }
        }
    }
}
