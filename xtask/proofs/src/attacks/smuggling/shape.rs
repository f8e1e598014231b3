//! A request that can be read in two ways, and the ways in which it may be.

use rand::random;

/// The longest body of a covered request, as the proxy is told.
pub(super) const REQUEST_BYTES_MAX: usize = 4_096;

/// How a request may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Right {
    /// Not at all: nobody knows where it ends. Refused, and the connection closed.
    Refused,
    /// Passed on with exactly this body, or refused. Where a length and chunks are both named, chunks go first.
    Passed(Vec<u8>),
    /// It is clear where it ends, and the proxy answers it itself with one of these statuses.
    Answered(&'static [u16]),
}

/// What happened under the same key before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// The same request was answered.
    Done,
    /// Another request with this key was answered.
    OtherDone,
    /// Another request with this key is running.
    OtherRunning,
}

/// What kind of request is bent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// POST with a key: the proxy reads all of it before it asks.
    Covered,
    /// POST without: it streams through.
    Uncovered,
    /// GET, which has no business with a body.
    Get,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Covered, Self::Uncovered, Self::Get];

    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Covered | Self::Uncovered => "POST",
            Self::Get => "GET",
        }
    }
}

/// One request that can be read in two ways.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) name: String,
    /// Stands in every target that belongs to it.
    pub(super) mark: String,
    pub(super) bytes: Vec<u8>,
    pub(super) right: Right,
    pub(super) before: Before,
    /// Whether it is of HTTP/2.
    pub(super) is_framed: bool,
    pub(super) key: String,
}

/// What is being put together: everything but the bent part.
pub(super) struct Draft {
    pub(super) kind: Kind,
    pub(super) mark: String,
    pub(super) key: String,
}

impl Draft {
    pub(super) fn new(kind: Kind) -> Self {
        let mark = format!("m{:016x}", random::<u64>());
        Self { kind, key: format!("key-{mark}"), mark }
    }

    pub(super) fn target(&self) -> String {
        format!("/shape/{}", self.mark)
    }

    /// A request that must never be taken for one: it is hidden in bodies.
    pub(super) fn hidden(&self) -> String {
        format!("GET /smuggled/{} HTTP/1.1\r\nHost: api.test\r\nX-Hidden: yes\r\n\r\n", self.mark)
    }

    /// The first line as it should be.
    pub(super) fn first_line(&self) -> String {
        format!("{} {} HTTP/1.1\r\n", self.kind.method(), self.target())
    }

    /// The lines that every request has, the host apart.
    pub(super) fn usual(&self) -> String {
        let key = match self.kind {
            Kind::Covered => format!("Idempotency-Key: {}\r\n", self.key),
            Kind::Uncovered | Kind::Get => String::new(),
        };
        format!("Authorization: Bearer caller-of-shapes\r\n{key}")
    }

    /// A request with these lines in its head, each with its own end, and this after it.
    pub(super) fn with(self, name: &str, lines: &[u8], body: &[u8], right: Right) -> Shape {
        let head = format!("{}Host: api.test\r\n{}", self.first_line(), self.usual());
        let bytes = [head.as_bytes(), lines, b"\r\n", body].concat();
        self.whole(name, bytes, right)
    }

    /// A request of these bytes.
    pub(super) fn whole(self, name: &str, bytes: Vec<u8>, right: Right) -> Shape {
        Shape {
            name: format!("{name} ({:?})", self.kind),
            mark: self.mark,
            bytes,
            right,
            before: Before::Nothing,
            is_framed: false,
            key: self.key,
        }
    }
}

impl Shape {
    pub(super) fn after(mut self, before: Before) -> Self {
        self.before = before;
        self
    }

    /// Its bytes are frames of HTTP/2.
    pub(super) fn in_frames(mut self) -> Self {
        self.is_framed = true;
        self
    }

    pub(super) fn of(&self, what: &str) -> String {
        format!("/{what}/{}", self.mark)
    }
}
