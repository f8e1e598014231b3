//! Who asks, what their role may, and how far their scope reaches.

use std::time::Duration;

use semel::Key;

use super::quota::Quota;

/// Who asks.
#[derive(Debug)]
pub struct Caller {
    name: Box<str>,
    rights: Rights,
    scope: Vec<Box<str>>,
    quota: Quota,
}

#[derive(Clone, Copy, Debug)]
enum Rights {
    /// Whoever reaches the loopback address of a server without tokens.
    All,
    Of(Role),
}

impl Caller {
    /// Whoever asks a server without tokens, which listens on loopback only.
    pub fn local() -> Self {
        Self { name: "local".into(), rights: Rights::All, scope: Vec::new(), quota: Quota::none() }
    }

    /// Whoever has a token.
    pub fn new(name: impl Into<Box<str>>, role: Role, scope: Vec<Box<str>>, quota: Quota) -> Self {
        Self { name: name.into(), rights: Rights::Of(role), scope, quota }
    }

    /// The name of the token, for people and the audit log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The scope that this caller cannot leave.
    pub fn scope(&self) -> &[Box<str>] {
        &self.scope
    }

    /// The role, for people.
    pub fn role_word(&self) -> &'static str {
        match self.rights {
            Rights::All => "all",
            Rights::Of(role) => role.as_str(),
        }
    }

    /// Whether the caller's role is enough.
    pub fn may(&self, need: Need) -> bool {
        match self.rights {
            Rights::All => true,
            Rights::Of(role) => role.may(need),
        }
    }

    /// Whether the key is within the caller's scope.
    pub fn reaches(&self, key: &Key) -> bool {
        let mut scope = key.scope();
        self.scope.iter().all(|part| scope.next() == Some(part))
    }

    /// Takes so many asks from the quota, or says how long to wait.
    pub fn admit(&self, asks: u64) -> Result<(), Duration> {
        self.quota.take(asks)
    }
}

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Workers: claim keys, and settle what they claimed.
    Work,
    /// People and tools that look: records, lists, counts; never what is in an outcome.
    Read,
    /// People on call: everything that `Read` sees, what is in outcomes, and the right to release and resolve.
    Operate,
}

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// Claim, and settle under a permit.
    Claim,
    /// See one record whose key is known.
    See,
    /// See which records there are, counts, offsets, live events.
    List,
    /// See the bytes of an outcome.
    Content,
    /// Release or resolve somebody else's record.
    Act,
}

impl Role {
    /// Whether the role is enough.
    pub fn may(self, need: Need) -> bool {
        match need {
            Need::Claim => self == Self::Work,
            Need::See => true,
            Need::List => matches!(self, Self::Read | Self::Operate),
            Need::Content => matches!(self, Self::Work | Self::Operate),
            Need::Act => self == Self::Operate,
        }
    }

    /// The word for it, in files and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Read => "read",
            Self::Operate => "operate",
        }
    }
}
