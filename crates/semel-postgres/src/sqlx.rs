//! The same inside a transaction of sqlx, for each release that a feature names.

use bytes::BytesMut;
use semel::clock::Timestamp;
use semel::{Error, ErrorKind, Result};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

use crate::error::corrupt;
use crate::swap_answer::SwapAnswer;
use crate::value::{Moment, Value};

#[cfg(feature = "sqlx-0_8")]
mod release_0_8 {
    super::carrier!(sqlx_0_8);
}

#[cfg(feature = "sqlx-0_9")]
mod release_0_9 {
    super::carrier!(sqlx);
}

/// Implements [`Carrier`](crate::transaction::Carrier) for the transactions of one release of sqlx. Releases have the same
/// names and share no types, so this is written once and compiled for each.
macro_rules! carrier {
    ($sqlx:ident) => {
        use semel::{Error, ErrorKind, Result};
        use $sqlx::encode::{Encode, IsNull};
        use $sqlx::error::BoxDynError;
        use $sqlx::postgres::types::Oid;
        use $sqlx::postgres::{PgArgumentBuffer, PgRow, PgTypeInfo};
        use $sqlx::{Connection, Executor, Postgres, Row, Transaction, ValueRef};

        use super::{Bound, answer, failed, unread};
        use crate::swap_answer::SwapAnswer;
        use crate::transaction::{Asked, Carrier, REFUSE};

        impl $sqlx::Type<Postgres> for Bound {
            fn type_info() -> PgTypeInfo {
                PgTypeInfo::with_name("bytea")
            }
        }

        impl Encode<'_, Postgres> for Bound {
            fn encode_by_ref(
                &self,
                buffer: &mut PgArgumentBuffer,
            ) -> std::result::Result<IsNull, BoxDynError> {
                let Some(bytes) = &self.bytes else { return Ok(IsNull::Yes) };
                buffer.extend_from_slice(bytes);
                Ok(IsNull::No)
            }

            fn produces(&self) -> Option<PgTypeInfo> {
                Some(PgTypeInfo::with_oid(Oid(self.kind.oid())))
            }
        }

        impl Carrier for &mut Transaction<'_, Postgres> {
            async fn ask(&mut self, ask: Asked<'_>) -> Result<Option<SwapAnswer>> {
                let (text, values, types) = ask.question();
                // With its cache of statements turned off, sqlx would prepare one by name at each call and never close it,
                // which breaks behind a pooler in transaction mode. A cache that holds something is on.
                let is_cached = self.cached_statements_size() > 0;
                let mut query = $sqlx::query(text).persistent(is_cached);
                for (value, kind) in values.iter().zip(types) {
                    query = query.bind(Bound::new(value, kind.clone())?);
                }
                let row = query.fetch_optional(&mut ***self).await.map_err(error)?;
                row.as_ref().map(swap_answer).transpose()
            }

            async fn refuse(&mut self) {
                // The refusal is an error by design; if the line is gone, so is the transaction.
                drop((&mut ***self).execute(REFUSE).await);
            }
        }

        fn swap_answer(row: &PgRow) -> Result<SwapAnswer> {
            answer([bytes(row, 0)?, bytes(row, 1)?, bytes(row, 2)?, bytes(row, 3)?])
        }

        fn bytes(row: &PgRow, column: usize) -> Result<Option<&[u8]>> {
            let value = row.try_get_raw(column).map_err(unread)?;
            if value.is_null() { Ok(None) } else { value.as_bytes().map(Some).map_err(unread) }
        }

        fn error(cause: $sqlx::Error) -> Error {
            let is_answer = matches!(cause, $sqlx::Error::Database(_));
            failed(if is_answer { ErrorKind::Unavailable } else { ErrorKind::Unknown }, cause)
        }
    };
}
use carrier;

/// A value in the form that sqlx sends.
struct Bound {
    bytes: Option<BytesMut>,
    kind: Type,
}

impl Bound {
    fn new(value: &Value<'_>, kind: Type) -> Result<Self> {
        let mut bytes = BytesMut::new();
        let written = value
            .to_sql(&kind, &mut bytes)
            .map_err(|error| corrupt("a value cannot be written").caused_by(error))?;
        Ok(Self { bytes: matches!(written, IsNull::No).then_some(bytes), kind })
    }
}

/// What the columns of an answer say.
fn answer([id, version, now, shown]: [Option<&[u8]>; 4]) -> Result<SwapAnswer> {
    let id = id.ok_or_else(|| corrupt("its id is null"))?;
    let version = version.map(|raw| i64::from_sql(&Type::INT8, raw)).transpose().map_err(unread)?;
    let now = now.map(|raw| Moment::from_sql(&Type::TIMESTAMPTZ, raw)).transpose().map_err(unread)?;
    let now = now.map_or_else(Timestamp::default, |moment| moment.0);
    SwapAnswer::new(id, version.map(i64::unsigned_abs), now, shown)
}

fn unread(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    corrupt("an answer has another shape than was asked for").caused_by(error)
}

/// Whatever failed, the transaction cannot commit any more, or it is unknown whether it can: only its own commit tells.
fn failed(kind: ErrorKind, cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(kind, format!("PostgreSQL: {cause}; roll back and ask again")).caused_by(cause)
}
