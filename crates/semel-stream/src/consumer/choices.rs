//! What a consumer may choose.

use std::fmt;
use std::sync::Arc;

use crate::event::Event;
use crate::key::KeyFunction;

/// Which events must be processed one after the other, in the order of their delivery. An event that is tried again
/// holds up those behind it.
#[derive(Clone, Default)]
pub enum Order {
    /// None: whichever comes first.
    #[default]
    Any,
    /// Those of one stream.
    Stream,
    /// Those of one stream with the same partition key; events without one are in no order.
    PartitionKey,
    /// Those for which a function says the same; events for which it says nothing are in no order.
    By(KeyFunction),
}

/// What must be processed one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    Stream(Arc<str>),
    PartitionKey(Arc<str>, Box<str>),
    By(String),
}

impl Order {
    pub(super) fn lane(&self, event: &Event) -> Option<Lane> {
        match self {
            Self::Any => None,
            Self::Stream => Some(Lane::Stream(Arc::clone(&event.stream))),
            Self::PartitionKey => {
                let key = event.partition_key.clone()?;
                Some(Lane::PartitionKey(Arc::clone(&event.stream), key))
            }
            Self::By(function) => function(event).map(Lane::By),
        }
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "Any",
            Self::Stream => "Stream",
            Self::PartitionKey => "PartitionKey",
            Self::By(_) => "By(…)",
        })
    }
}

/// What becomes of an event that somebody else is processing. It is never acknowledged: the other one may fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBusy {
    /// It stays here until the other one is done, and is processed if that one failed.
    #[default]
    Wait,
    /// Back to the source, which delivers it again later. Where there is an order it waits instead: it would be overtaken.
    GiveBack,
}

/// What becomes of an event that nobody may process before somebody has looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnHeld {
    /// It stays here until somebody has resolved it. The offset stays before it; what is behind it goes on.
    #[default]
    Wait,
    /// Back to the source, which delivers it again later. Where there is an order it waits instead: it would be overtaken.
    GiveBack,
    /// The consumer stops and says so.
    Stop,
}
