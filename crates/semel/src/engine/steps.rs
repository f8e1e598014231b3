//! Steps: parts of a run that a second attempt goes on after, instead of repeating them.

use std::fmt::Display;
use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::once::{OnceError, from_json, to_json};
use super::permit::Permit;
use crate::error::Error;

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
        self.put_step(name, to_json(&value)?).await?;
        Ok(value)
    }
}
