//! One answer of a hostile upstream, and what it means.

use std::fmt;

/// Which HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// What an answer means by the standards. Whatever it means, it may also be refused, or end visibly broken, unless it must pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Means {
    /// Nothing: no client may take it for an answer.
    Nothing,
    /// Exactly this body.
    Body(Vec<u8>),
    /// Exactly this body, and it is so usual that it must arrive.
    Must(Vec<u8>),
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Body(body) | Self::Must(body) => write!(f, "{:?}", String::from_utf8_lossy(body)),
        }
    }
}

/// What the upstream does after its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Closes the connection.
    Close,
    /// Waits for the next request.
    Stay,
}

/// When the upstream answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// After it has read the whole request.
    Asked,
    /// As soon as there is a connection.
    AtOnce,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is odd about it.
    pub name: String,
    /// What it means.
    pub means: Means,
    /// Which HTTP the upstream speaks.
    pub version: Version,
    /// Whether it is an answer to `HEAD`.
    pub is_head: bool,
    pub(super) bytes: Bytes,
    pub(super) then: Then,
    pub(super) when: When,
}

/// What the upstream sends.
#[derive(Clone, Debug)]
pub(super) enum Bytes {
    Plain(Vec<u8>),
    /// Frames that answer this stream.
    Frames(fn(u32) -> Vec<u8>),
}

impl Case {
    pub(super) fn http1(name: &str, bytes: impl Into<Vec<u8>>, means: Means) -> Self {
        let (name, bytes) = (name.to_owned(), Bytes::Plain(bytes.into()));
        Self {
            name,
            means,
            version: Version::Http1,
            is_head: false,
            bytes,
            then: Then::Close,
            when: When::Asked,
        }
    }

    pub(super) fn http2(name: &str, frames: fn(u32) -> Vec<u8>, means: Means) -> Self {
        let bytes = Bytes::Frames(frames);
        Self { version: Version::Http2, bytes, ..Self::http1(&format!("HTTP/2: {name}"), "", means) }
    }

    pub(super) fn staying(self) -> Self {
        Self { then: Then::Stay, ..self }
    }

    pub(super) fn for_head(self) -> Self {
        Self { is_head: true, ..self }
    }

    pub(super) fn at_once(self) -> Self {
        Self { when: When::AtOnce, ..self }
    }
}
