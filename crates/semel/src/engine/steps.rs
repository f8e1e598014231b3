//! Steps: parts of a run that a second attempt goes on after, instead of repeating them.

use std::fmt::Display;
use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::once::{OnceError, from_json, to_json};
use super::permit::Permit;
use crate::error::Error;
use crate::machine::amend::{self, Stepped};
use crate::record::{Record, Step};

impl Permit {
    /// Runs a step of the work, or hands back its value if an earlier attempt finished it. The value is stored
    /// before this returns.
    pub async fn step<T, E, F, Fut>(&self, name: &str, work: F) -> Result<T, OnceError<E>>
    where
        T: Serialize + DeserializeOwned,
        E: Display,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        if name.is_empty() {
            return Err(Error::invalid("a step's name is empty; name it").into());
        }
        if let Some(step) = self.known_step(name) {
            return Ok(from_json(&step.value)?);
        }
        let value = work().await.map_err(OnceError::Work)?;
        if self.is_unprotected() {
            return Ok(value);
        }
        let step = Step { name: name.into(), value: to_json(&value)?.into() };
        let proof = self.proof();
        let carried = self
            .ask("step", move |found: Option<&Record>, now| amend::step(found, proof, &step, now))
            .await?;
        match carried.answer {
            Stepped::Stored => Ok(value),
            Stepped::Lost => Err(self.mark_lost("the step was not stored").into()),
        }
    }
}
