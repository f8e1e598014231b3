//! Values on the wire, in PostgreSQL's binary format: single ones, arrays of them, and the fields of a row.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use semel::Result;
use semel::clock::Timestamp;
use tokio_postgres::types::{FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};

use crate::error::corrupt;

/// PostgreSQL counts from the start of 2000, semel from the start of 1970.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
/// Spans beyond ten thousand years are as good as for ever, and would leave PostgreSQL's calendar.
const SPAN_MICROS_MAX: u64 = 10_000 * 365 * 24 * 3_600 * 1_000_000;

/// The only form in which the server takes and sends `jsonb`: this byte, then the text.
const JSONB_FORMAT: u8 = 1;
const DAY: Duration = Duration::from_hours(24);

/// One value of a swap.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    Digest([u8; 32]),
    Bytes(Option<Cow<'a, [u8]>>),
    Text(Option<Cow<'a, str>>),
    /// JSON text, for a column of `jsonb`.
    Json(Option<String>),
    Number(Option<u64>),
    Small(u32),
    Moment(Option<Timestamp>),
    Span(Option<Duration>),
    Uuid(Option<u128>),
}

impl Value<'_> {
    pub(crate) fn is_null(&self) -> bool {
        match self {
            Self::Digest(_) | Self::Small(_) => false,
            Self::Bytes(value) => value.is_none(),
            Self::Text(value) => value.is_none(),
            Self::Json(value) => value.is_none(),
            Self::Number(value) => value.is_none(),
            Self::Moment(value) => value.is_none(),
            Self::Span(value) => value.is_none(),
            Self::Uuid(value) => value.is_none(),
        }
    }

    /// Appends the value, and says whether there is one.
    fn write(&self, out: &mut BytesMut) -> IsNull {
        match self {
            Self::Digest(digest) => out.put_slice(digest),
            Self::Bytes(Some(bytes)) => out.put_slice(bytes),
            Self::Text(Some(text)) => out.put_slice(text.as_bytes()),
            Self::Json(Some(text)) => {
                out.put_u8(JSONB_FORMAT);
                out.put_slice(text.as_bytes());
            }
            Self::Number(Some(number)) => out.put_i64(i64::try_from(*number).unwrap_or(i64::MAX)),
            Self::Small(number) => out.put_i32(i32::try_from(*number).unwrap_or(i32::MAX)),
            Self::Moment(Some(moment)) => out.put_i64(micros_since_2000(*moment)),
            Self::Span(Some(span)) => {
                let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX).min(SPAN_MICROS_MAX);
                out.put_i64(i64::try_from(micros).unwrap_or(i64::MAX));
                // Days and months: not of a fixed length, so no span of ours has any.
                out.put_i64(0);
            }
            Self::Uuid(Some(number)) => out.put_u128(*number),
            Self::Bytes(None)
            | Self::Text(None)
            | Self::Json(None)
            | Self::Number(None)
            | Self::Moment(None)
            | Self::Span(None)
            | Self::Uuid(None) => return IsNull::Yes,
        }
        IsNull::No
    }
}

fn micros_since_2000(moment: Timestamp) -> i64 {
    i64::try_from(moment.as_micros()).unwrap_or(i64::MAX).saturating_sub(EPOCH_MICROS)
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        Ok(self.write(out))
    }

    // The statements are ours, and their parameters are cast to what is written here.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// An array, written as it grows: of single values, or of rows.
#[derive(Debug, Default)]
pub(crate) struct Array {
    elements: BytesMut,
    count: i32,
}

impl Array {
    pub(crate) fn push(&mut self, value: &Value<'_>) {
        write_with_length(value, &mut self.elements);
        self.count = self.count.saturating_add(1);
    }

    /// Adds a row of these fields, which have these types.
    pub(crate) fn push_row(&mut self, fields: &[Value<'_>], types: &[Type]) {
        let start = self.elements.len();
        self.elements.put_i32(-1);
        self.elements.put_i32(i32::try_from(fields.len()).unwrap_or(i32::MAX));
        for (field, kind) in fields.iter().zip(types) {
            self.elements.put_u32(kind.oid());
            write_with_length(field, &mut self.elements);
        }
        write_length(start, &mut self.elements);
        self.count = self.count.saturating_add(1);
    }
}

/// Appends a value and its length before it, which is -1 if there is none.
fn write_with_length(value: &Value<'_>, out: &mut BytesMut) {
    let start = out.len();
    out.put_i32(-1);
    if let IsNull::No = value.write(out) {
        write_length(start, out);
    }
}

/// Writes the length of what was appended after the four bytes at `start` into them.
fn write_length(start: usize, out: &mut BytesMut) {
    let length = out.len().saturating_sub(start).saturating_sub(4);
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    if let Some(field) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
        *field = length.to_be_bytes();
    }
}

impl ToSql for Array {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let Kind::Array(member) = kind.kind() else {
            return Err("an array is sent for a parameter of another type".into());
        };
        // Dimensions; whether an element is null, which the server sees by itself; the type of the elements.
        out.put_i32(i32::from(self.count > 0));
        out.put_i32(0);
        out.put_u32(member.oid());
        if self.count > 0 {
            out.put_i32(self.count);
            out.put_i32(1);
            out.put_slice(&self.elements);
        }
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        matches!(kind.kind(), Kind::Array(_))
    }

    to_sql_checked!();
}

/// A moment as the server sends it.
pub(crate) struct Moment(pub(crate) Timestamp);

impl<'a> FromSql<'a> for Moment {
    fn from_sql(_: &Type, raw: &'a [u8]) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        let raw = raw.try_into().map_err(|_| "a moment is eight bytes long")?;
        Ok(Self(moment(i64::from_be_bytes(raw))))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }
}

/// A row as the server sends it: yet to be read.
pub(crate) struct Raw<'a>(pub(crate) &'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::RECORD | Type::BYTEA)
    }
}

fn moment(micros_since_2000: i64) -> Timestamp {
    Timestamp::from_micros(u64::try_from(micros_since_2000.saturating_add(EPOCH_MICROS)).unwrap_or(0))
}

/// The fields of a row, one after the other.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(row: &'a [u8]) -> Result<Self> {
        let (_, rest) = row.split_first_chunk::<4>().ok_or_else(cut)?;
        Ok(Self { rest })
    }

    /// The next field: its bytes, or none if it is null.
    fn next(&mut self) -> Result<Option<&'a [u8]>> {
        let (_type, rest) = self.rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.rest = rest;
            return Ok(None);
        };
        let (field, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        self.rest = rest;
        Ok(Some(field))
    }

    /// The next field, read by `read`, unless it is null.
    pub(crate) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        let mut ahead = Self { rest: self.rest };
        if ahead.next()?.is_none() {
            self.rest = ahead.rest;
            return Ok(None);
        }
        read(self).map(Some)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        self.next()?.ok_or_else(|| corrupt("a column is null that must not be"))
    }

    pub(crate) fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|error| corrupt("a text is no UTF-8").caused_by(error))
    }

    pub(crate) fn json(&mut self) -> Result<&'a str> {
        let text = self.bytes()?.strip_prefix(&[JSONB_FORMAT]);
        let text = text.ok_or_else(|| corrupt("a list is in another form than this release reads"))?;
        std::str::from_utf8(text).map_err(|error| corrupt("a list is no UTF-8").caused_by(error))
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        u64::try_from(i64::from_be_bytes(self.chunk()?)).map_err(|_| corrupt("a number is negative"))
    }

    pub(crate) fn small(&mut self) -> Result<u32> {
        u32::try_from(i32::from_be_bytes(self.chunk()?)).map_err(|_| corrupt("a number is negative"))
    }

    /// The number of a transaction.
    pub(crate) fn transaction(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.chunk()?))
    }

    pub(crate) fn moment(&mut self) -> Result<Timestamp> {
        Ok(moment(i64::from_be_bytes(self.chunk()?)))
    }

    pub(crate) fn span(&mut self) -> Result<Duration> {
        let negative = |_| corrupt("a span is negative");
        let [m0, m1, m2, m3, m4, m5, m6, m7, d0, d1, d2, d3, months @ ..] = self.chunk::<16>()?;
        let micros = i64::from_be_bytes([m0, m1, m2, m3, m4, m5, m6, m7]);
        let micros = u64::try_from(micros).map_err(negative)?;
        // semel writes neither days nor months; a person who writes '30 days' means days of 24 hours.
        let days = u32::try_from(i32::from_be_bytes([d0, d1, d2, d3])).map_err(negative)?;
        if months != [0; 4] {
            return Err(corrupt("a span is in months, whose length varies"));
        }
        Ok(Duration::from_micros(micros).saturating_add(DAY.saturating_mul(days)))
    }

    pub(crate) fn uuid(&mut self) -> Result<u128> {
        Ok(u128::from_be_bytes(self.chunk()?))
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.bytes()?.try_into().map_err(|_| corrupt("a column is of another type than this release wrote"))
    }
}

fn cut() -> semel::Error {
    corrupt("its row is cut short")
}
