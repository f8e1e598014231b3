//! A connection that is ready for asks: its server is checked, and what is asked over and over is prepared.

use std::sync::LazyLock;

use semel::{Error, ErrorKind, Result};
use tokio_postgres::types::{Kind, ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

use crate::check::{self, ServerSettings};
use crate::config::Role;
use crate::error::{AskFailure, Sent, error};
use crate::servers::{Connected, SETTINGS, ServerIdentity, Servers, Sessions};
use crate::statement::{Known, SWAP_TYPES};
use crate::wire::Wire;
use crate::{rights, schema};

/// What begins a transaction in a session that belongs to a pooler: the settings end with it.
static BEGIN: LazyLock<String> = LazyLock::new(|| {
    let is_local = |name: &&(&str, &str)| !name.0.starts_with("default_transaction");
    let settings = SETTINGS.iter().filter(is_local);
    let settings: Vec<_> = settings.map(|(name, value)| format!("SET LOCAL {name} = '{value}'")).collect();
    format!("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {}", settings.join("; "))
});

/// What a session is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Statements that wait for the synchronous standby, if there is one.
    Writes,
    /// All others.
    Reads,
}

/// A statement to be sent.
#[derive(Clone, Copy)]
pub(crate) enum Question<'a> {
    /// One that every session has prepared.
    Known(Known),
    /// One that is asked now and then, and changes nothing; with the types of its parameters.
    Read(&'a str, &'a [Type]),
}

impl Question<'_> {
    /// Whether it can change a record.
    pub(crate) fn writes(self) -> bool {
        match self {
            Self::Known(known) => known.writes(),
            Self::Read(..) => false,
        }
    }

    fn text_and_types<'a>(&'a self, arrays: &'a [Type; 2]) -> (&'a str, &'a [Type]) {
        match self {
            Self::Known(known) => (known.text(), known.types(arrays)),
            Self::Read(text, types) => (text, types),
        }
    }
}

/// A connection that is ready for asks.
pub(crate) struct Session {
    wire: Wire,
    pub(crate) server: Option<ServerIdentity>,
    /// What the server was set to when the session was opened.
    pub(crate) settings: ServerSettings,
    /// In the order of [`Known::ALL`]; `None` where a pooler could give the next transaction a session that has prepared
    /// nothing.
    prepared: Option<Vec<Statement>>,
    /// The types of the arrays of a batch, which differ between databases.
    arrays: [Type; 2],
}

impl Session {
    /// Connects, and refuses a server without the tables, or on which the role lacks rights.
    pub(crate) async fn open(servers: &Servers, purpose: Purpose) -> Result<Self> {
        let Connected { wire, identity, sessions, .. } = servers.connect(|_| {}).await?;
        let config = &servers.config;
        // Settings that break the promise stop new claims; runs that were granted can still be completed.
        let settings = ServerSettings::read(&wire).await?;
        servers.health.note(&settings, &settings.findings(config), config);
        schema::demand(&wire).await?;
        if config.role == Role::Primary {
            rights::demand(&wire).await?;
            let writes = purpose == Purpose::Writes || !servers.has_raised_versions(identity);
            if writes && settings.waits_for_standby() {
                check::demand_standby_answers(&wire, config.reply_within).await?;
            }
            servers.raise_versions(&wire, identity).await?;
        }
        let arrays = swap_arrays(&wire).await?;
        let prepared = match sessions {
            Sessions::Own => {
                Some(prepare_all(wire.client(), &arrays).await.map_err(|failed| error(failed, Sent::No))?)
            }
            Sessions::Pooled => None,
        };
        Ok(Self { wire, server: identity, settings, prepared, arrays })
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.wire.is_closed()
    }

    /// Sends a statement in a transaction of its own.
    pub(crate) async fn ask(
        &self,
        question: Question<'_>,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, AskFailure> {
        let unreplicated = self.wire.unreplicated_commits();
        let client = self.wire.client();
        let rows = match (&self.prepared, question) {
            (Some(prepared), Question::Known(known)) => match prepared.get(known as usize) {
                Some(statement) => client.query(statement, parameters).await?,
                None => {
                    client.query_typed(known.text(), &typed(parameters, known.types(&self.arrays))).await?
                }
            },
            (Some(_), Question::Read(text, types)) => {
                client.query_typed(text, &typed(parameters, types)).await?
            }
            (None, question) => self.ask_pooler(question, parameters).await?,
        };
        if self.wire.unreplicated_commits() == unreplicated {
            Ok(rows)
        } else {
            Err(AskFailure::Unreplicated)
        }
    }

    /// The same through a pooler. All three go out in one write, so a session of the server is held for one round trip.
    async fn ask_pooler(
        &self,
        question: Question<'_>,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let (text, types) = question.text_and_types(&self.arrays);
        let parameters = typed(parameters, types);
        let client = self.wire.client();
        let (begun, rows, committed) = tokio::join!(
            client.batch_execute(&BEGIN),
            client.query_typed(text, &parameters),
            client.batch_execute("COMMIT"),
        );
        begun?;
        let rows = rows?;
        committed?;
        Ok(rows)
    }
}

fn typed<'a>(parameters: &[&'a (dyn ToSql + Sync)], types: &[Type]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    parameters.iter().copied().zip(types.iter().cloned()).collect()
}

/// The statements that are asked over and over, in the order of [`Known::ALL`]; all in one round trip.
async fn prepare_all(client: &Client, arrays: &[Type; 2]) -> Result<Vec<Statement>, tokio_postgres::Error> {
    let prepare = |known: Known| client.prepare_typed(known.text(), known.types(arrays));
    futures_util::future::try_join_all(Known::ALL.map(prepare)).await
}

/// The types of the arrays of a batch.
async fn swap_arrays(wire: &Wire) -> Result<[Type; 2]> {
    let found = wire.read(SWAP_TYPES).await?;
    let oids: Vec<u32> = found.iter().flatten().flatten().filter_map(|oid| oid.parse().ok()).collect();
    let &[element, array] = &oids[..] else {
        return Err(Error::new(ErrorKind::Unavailable, "the server did not say which type semel_swap is"));
    };
    let named = |oid, kind| Type::new("semel_swap".into(), oid, kind, String::new());
    let array = named(array, Kind::Array(named(element, Kind::Composite(Vec::new()))));
    Ok([array.clone(), array])
}
