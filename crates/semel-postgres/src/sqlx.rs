//! The same inside a transaction of sqlx.

use bytes::BytesMut;
use semel::clock::Timestamp;
use semel::{Error, ErrorKind, Result};
use sqlx::encode::{Encode, IsNull};
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgRow, PgTypeInfo};
use sqlx::{Postgres, Row, ValueRef};
use tokio_postgres::types::{FromSql, ToSql, Type};

use crate::error::corrupt;
use crate::swap_answer::SwapAnswer;
use crate::transaction::{Asked, Carrier, REFUSE};
use crate::value::{Moment, Value};

/// A value in the form that sqlx sends.
struct Bound(Option<BytesMut>, Type);

impl Bound {
    fn new(value: &Value<'_>, kind: Type) -> Result<Self> {
        let mut bytes = BytesMut::new();
        let written = value
            .to_sql(&kind, &mut bytes)
            .map_err(|error| corrupt("a value cannot be written").caused_by(error))?;
        Ok(Self(matches!(written, tokio_postgres::types::IsNull::No).then_some(bytes), kind))
    }
}

impl sqlx::Type<Postgres> for Bound {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("bytea")
    }
}

impl Encode<'_, Postgres> for Bound {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> std::result::Result<IsNull, BoxDynError> {
        let Some(bytes) = &self.0 else { return Ok(IsNull::Yes) };
        buffer.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(Oid(self.1.oid())))
    }
}

impl Carrier for &mut sqlx::Transaction<'_, Postgres> {
    async fn ask(&mut self, ask: Asked<'_>) -> Result<Option<SwapAnswer>> {
        let (text, values, types) = ask.question();
        let mut query = sqlx::query(text);
        for (value, kind) in values.iter().zip(types) {
            query = query.bind(Bound::new(value, kind.clone())?);
        }
        let row = query.fetch_optional(&mut ***self).await.map_err(error)?;
        row.as_ref().map(swap_answer).transpose()
    }

    async fn refuse(&mut self) {
        // The refusal is an error by design; if the line is gone, so is the transaction.
        drop(sqlx::raw_sql(REFUSE).execute(&mut ***self).await);
    }
}

fn swap_answer(row: &PgRow) -> Result<SwapAnswer> {
    let id = bytes(row, 0)?.ok_or_else(|| corrupt("its id is null"))?;
    let version = bytes(row, 1)?.map(|raw| i64::from_sql(&Type::INT8, raw)).transpose().map_err(unread)?;
    let now =
        bytes(row, 2)?.map(|raw| Moment::from_sql(&Type::TIMESTAMPTZ, raw)).transpose().map_err(unread)?;
    let now = now.map_or_else(Timestamp::default, |moment| moment.0);
    SwapAnswer::new(id, version.map(i64::unsigned_abs), now, bytes(row, 3)?)
}

fn bytes(row: &PgRow, column: usize) -> Result<Option<&[u8]>> {
    let value = row.try_get_raw(column).map_err(unread)?;
    if value.is_null() { Ok(None) } else { value.as_bytes().map(Some).map_err(unread) }
}

fn unread(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    corrupt("an answer has another shape than was asked for").caused_by(error)
}

/// Whatever failed, the transaction cannot commit any more, or it is unknown whether it can: only its own commit tells.
fn error(failed: sqlx::Error) -> Error {
    let kind =
        if matches!(failed, sqlx::Error::Database(_)) { ErrorKind::Unavailable } else { ErrorKind::Unknown };
    Error::new(kind, format!("PostgreSQL: {failed}; roll back and ask again")).caused_by(failed)
}
