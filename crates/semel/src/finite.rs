//! Whether a value holds a number that is not finite: JSON would write it as `null`.

use std::fmt;

use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Serializes into nothing, and stops at the first number that is not finite.
#[derive(Clone, Copy)]
pub(crate) struct Finite;

/// Why a value was not walked through to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotSerialized {
    /// A number in it is not finite.
    NotFinite,
    /// Its own code failed; it will fail again where the value is written.
    Failed,
}

impl fmt::Display for NotSerialized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFinite => "a number is not finite",
            Self::Failed => "the value cannot be serialized",
        })
    }
}

impl std::error::Error for NotSerialized {}

impl Error for NotSerialized {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Failed
    }
}

type Walked = Result<(), NotSerialized>;

fn number(is_finite: bool) -> Walked {
    if is_finite { Ok(()) } else { Err(NotSerialized::NotFinite) }
}

macro_rules! plain {
    ($($method:ident: $kind:ty),+) => { $(fn $method(self, _: $kind) -> Walked { Ok(()) })+ };
}

impl Serializer for Finite {
    type Ok = ();
    type Error = NotSerialized;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    plain!(
        serialize_bool: bool,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
        serialize_char: char, serialize_str: &str, serialize_bytes: &[u8], serialize_unit_struct: &'static str
    );

    fn serialize_f32(self, value: f32) -> Walked {
        number(value.is_finite())
    }

    fn serialize_f64(self, value: f64) -> Walked {
        number(value.is_finite())
    }

    fn serialize_none(self) -> Walked {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Walked {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Walked {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Walked {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Walked {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Walked {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, NotSerialized> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, NotSerialized> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, NotSerialized> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, NotSerialized> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, NotSerialized> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, NotSerialized> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, NotSerialized> {
        Ok(self)
    }
}

macro_rules! walked {
    ($($kind:ident: $method:ident),+) => { $(
        impl $kind for Finite {
            type Ok = ();
            type Error = NotSerialized;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Walked {
                value.serialize(*self)
            }

            fn end(self) -> Walked {
                Ok(())
            }
        }
    )+ };
}

walked!(
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
);

macro_rules! walked_by_name {
    ($($kind:ident),+) => { $(
        impl $kind for Finite {
            type Ok = ();
            type Error = NotSerialized;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Walked {
                value.serialize(*self)
            }

            fn end(self) -> Walked {
                Ok(())
            }
        }
    )+ };
}

walked_by_name!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Finite {
    type Ok = ();
    type Error = NotSerialized;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Walked {
        key.serialize(*self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Walked {
        value.serialize(*self)
    }

    fn end(self) -> Walked {
        Ok(())
    }
}
