//! What a role may.

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
