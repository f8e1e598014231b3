//! Permits that go from one process to another, and steps for runs in other languages.

use std::sync::Arc;
use std::time::Duration;

use super::permit::Permit;
use super::semel::Semel;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::machine::amend::{self, Stepped};
use crate::record::{PermitId, Record, Step, Version};

/// Everything that makes a permit, to be carried to another process. Whoever has the permit id may settle the run: it
/// is for the caller that was granted it, and for nobody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermitParts {
    /// What must happen once.
    pub key: Key,
    /// What proves the permit.
    pub permit_id: PermitId,
    /// The how-manieth run it is.
    pub attempt: u32,
    /// The number that only grows.
    pub fence: Version,
    /// How long it is good without renewal.
    pub lease: Duration,
}

impl Semel {
    /// The permit that these parts make, without asking the store: whether it still holds a run is told by the next call
    /// on it. Its deadline starts now, because nobody can say on this machine's clock when it was granted; a caller
    /// that must know renews it first.
    pub fn permit(&self, parts: PermitParts) -> Permit {
        Permit::handed(&self.inner, parts)
    }
}

impl Permit {
    /// What another process needs to go on under this permit; `None` if no store knows of the run.
    pub fn parts(&self) -> Option<PermitParts> {
        (!self.is_unprotected()).then(|| PermitParts {
            key: self.key().clone(),
            permit_id: self.id(),
            attempt: self.attempt(),
            fence: self.fence_version(),
            lease: self.lease(),
        })
    }

    /// The steps that this attempt and earlier ones have finished, as far as this process knows.
    pub fn steps(&self) -> Vec<Step> {
        self.known().map(|record| record.steps().to_vec()).unwrap_or_default()
    }

    /// Stores the value of a finished step, as bytes. A step that is there already keeps its value.
    pub async fn put_step(&self, name: &str, value: impl Into<Arc<[u8]>>) -> Result<()> {
        if name.is_empty() {
            return Err(Error::invalid("a step's name is empty; name it"));
        }
        if self.is_unprotected() {
            return Ok(());
        }
        let step = Step { name: name.into(), value: value.into() };
        let proof = self.proof();
        let carried = self
            .ask("step", move |found: Option<&Record>, now| amend::step(found, proof, &step, now))
            .await?;
        match carried.answer {
            Stepped::Stored => Ok(()),
            Stepped::Lost => Err(self.mark_lost("the step was not stored")),
        }
    }
}
