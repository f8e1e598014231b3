//! A connection that comes back by itself.

use std::sync::Arc;
use std::time::Duration;

use semel::{Error, ErrorKind, Result};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use crate::config::Config;
use crate::error::{Sent, ends_session, error, is_entangled};
use crate::session::{Session, Statements};

/// How long a failure to connect stands for everybody who asks: a crowd must not knock one after the other.
const FAILURE_STANDS: Duration = Duration::from_millis(100);

/// How often a statement that got entangled with others' locks is sent again.
const ENTANGLED_TRIES_MAX: usize = 8;

/// A statement to be sent.
#[derive(Clone, Copy)]
pub(crate) enum Question<'a> {
    /// One that every session has prepared.
    Known(fn(&Statements) -> &Statement),
    /// One that is asked now and then.
    Text(&'a str),
}

/// One connection at a time, made when it is needed.
pub(crate) struct Reconnecting {
    config: Arc<Config>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    session: Option<Arc<Session>>,
    failure: Option<(Instant, ErrorKind, String)>,
}

impl Reconnecting {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        Self { config, state: Mutex::default() }
    }

    /// The session, or a new one if there is none that lives. An error means that nothing was sent.
    pub(crate) async fn session(&self) -> Result<Arc<Session>> {
        let mut state = self.state.lock().await;
        if let Some(session) = state.session.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(Arc::clone(session));
        }
        if let Some((at, kind, message)) = &state.failure
            && at.elapsed() < FAILURE_STANDS
        {
            return Err(Error::new(*kind, message));
        }
        match Session::open(&self.config).await {
            Ok(session) => {
                let session = Arc::new(session);
                *state = State { session: Some(Arc::clone(&session)), failure: None };
                Ok(session)
            }
            Err(error) => {
                state.failure = Some((Instant::now(), error.kind(), error.to_string()));
                Err(error)
            }
        }
    }

    /// Sends a statement, and again if the server undid it only because of others' locks.
    pub(crate) async fn ask(
        &self,
        question: Question<'_>,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let mut tries = 0..ENTANGLED_TRIES_MAX;
        loop {
            let session = self.session().await?;
            let answer = match question {
                Question::Known(which) => session.client.query(which(&session.statements), parameters).await,
                Question::Text(text) => session.client.query(text, parameters).await,
            };
            match answer {
                Ok(rows) => return Ok(rows),
                Err(failed) if is_entangled(&failed) && tries.next().is_some() => {}
                Err(failed) => {
                    self.judge(&session, &failed).await;
                    return Err(error(failed, Sent::Perhaps));
                }
            }
        }
    }

    /// Drops the session if the failure says that it is of no more use.
    async fn judge(&self, used: &Arc<Session>, failed: &tokio_postgres::Error) {
        if ends_session(failed) {
            let mut state = self.state.lock().await;
            state.session = state.session.take().filter(|session| !Arc::ptr_eq(session, used));
        }
    }
}
