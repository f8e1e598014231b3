//! A response as it came, and what may be asked of it.

use std::fmt;

use serde_json::Value;

/// A response: headers in their order, with all of one name.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) ending: Ending,
}

/// How the body of a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As its head said.
    Whole,
    /// With the end of the connection, as responses without a length do.
    Closed,
    /// Before its end.
    CutShort,
}

impl Answer {
    /// All values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let found = self.headers.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
    }

    /// The only value of a header.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut all = self.all(name);
        assert!(all.len() <= 1, "{name} is there {} times: {self:?}", all.len());
        all.pop()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.all("idempotent-replayed") == ["true"]
    }

    /// The code of a refusal, if it is one.
    pub(crate) fn code(&self) -> Option<String> {
        let is_problem = self.all("content-type") == ["application/problem+json"];
        let body: Value = serde_json::from_slice(&self.body).ok().filter(|_| is_problem)?;
        body.get("code")?.as_str().map(str::to_owned)
    }

    /// The members of a refusal.
    #[track_caller]
    pub(crate) fn problem(&self) -> Value {
        assert_eq!(self.header("content-type").as_deref(), Some("application/problem+json"), "{self:?}");
        serde_json::from_slice(&self.body).expect("a problem is JSON")
    }

    /// It must be this refusal, well formed.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.code().as_deref()), (status, Some(code)), "{self:?}");
        let problem = self.problem();
        assert_eq!(problem["status"], status, "{self:?}");
        assert!(problem["type"].as_str().is_some_and(|kind| kind.ends_with(code)), "{self:?}");
        for member in ["title", "detail"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "no {member}: {self:?}");
        }
        assert_eq!(self.header("cache-control").as_deref(), Some("no-store"), "{self:?}");
        assert_eq!(self.all("idempotent-replayed"), [""; 0], "{self:?}");
        problem
    }

    /// It must be a response of the service to this run, and no replay.
    #[track_caller]
    pub(crate) fn ran(&self, status: u16) -> &Self {
        assert_eq!((self.status, self.code()), (status, None), "{self:?}");
        assert!(!self.is_replay(), "{self:?}");
        assert_ne!(self.ending, Ending::CutShort, "{self:?}");
        self
    }

    /// It must be a replay of that response.
    #[track_caller]
    pub(crate) fn replays(&self, first: &Self) -> &Self {
        assert!(self.is_replay(), "{self:?}");
        assert_eq!(self.status, first.status, "{self:?}");
        assert!(self.body == first.body, "another body than the first: {self:?}, {first:?}");
        assert_ne!(self.ending, Ending::CutShort, "{self:?}");
        self
    }

    /// How many seconds it says to wait.
    #[track_caller]
    pub(crate) fn retry_after(&self) -> u64 {
        let header = self.header("retry-after").expect("there is a Retry-After");
        header.parse().expect("Retry-After is in seconds")
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{} ({:?}, {} bytes)", self.status, self.ending, self.body.len())?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {}", String::from_utf8_lossy(value))?;
        }
        let shown = self.body.get(..self.body.len().min(400)).unwrap_or_default();
        write!(f, "\n{}", String::from_utf8_lossy(shown))
    }
}
