//! Whether the store still works. After one failed write or sync of the log it never does again: what the disk holds then is
//! known only after it is opened anew.

use std::sync::{Arc, OnceLock};

use semel::{Error, ErrorKind, Result};

/// Whether the store still works, and if not, why.
#[derive(Debug, Default)]
pub(crate) struct Health(OnceLock<Arc<str>>);

impl Health {
    /// Ends the store. The first reason stays.
    pub(crate) fn fail(&self, why: impl Into<Arc<str>>) {
        let why = why.into();
        tracing::error!(why = &*why, "semel: the store stopped; open it again");
        // Only the first failure is the cause.
        drop(self.0.set(why));
    }

    /// Whether it still works; if not, nothing of what is asked now happens.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(why) => Err(Error::new(
                ErrorKind::Unavailable,
                format!(
                    "the store stopped, because {why}; nothing happened: mend the disk, then open it again"
                ),
            )),
        }
    }

    /// The error of calls whose writes were under way when it ended.
    pub(crate) fn unknown(&self) -> Error {
        let why = self.0.get().map_or("it was closed", |why| &**why);
        Error::new(
            ErrorKind::Unknown,
            format!(
                "the store stopped, because {why}; what was asked may or may not be there when it is opened again"
            ),
        )
    }
}
