//! Dead letters that an operator sends back, written down before and after.

use semel::record::StateKind;
use semel::{ErrorKind, Key, Result};
use semel_stream::{Pipeline, Requeue, RequeueAsk};

use super::{Action, Entry, Noted, Operator};

impl Operator<'_> {
    /// Sends dead letters of a pipeline back, in one write; one answer for each, in their order.
    pub async fn requeue(
        &self,
        pipeline: &Pipeline,
        asks: &[RequeueAsk],
        reason: &str,
    ) -> Result<Vec<Requeue>> {
        let keys: Result<Vec<Key>> = asks.iter().map(|ask| pipeline.run_key(&ask.event, 0)).collect();
        let keys = keys?;
        let entry = |key, result| {
            let (caller, action) = (self.name, Action::Requeue);
            Entry { caller, action, key, seen: Some(StateKind::Done), reason, result }
        };
        for key in &keys {
            self.audit.note(entry(key, Noted::Asked)).await?;
        }
        let answers = pipeline.requeue(asks).await;
        for (at, key) in keys.iter().enumerate() {
            let result = match &answers {
                Ok(answers) => match answers.get(at) {
                    Some(Requeue::Requeued { .. }) => Noted::Done,
                    _ => Noted::Refused,
                },
                Err(error) if error.kind() == ErrorKind::Unknown => Noted::Unknown,
                Err(_) => Noted::Refused,
            };
            if let Err(error) = self.audit.note(entry(key, result)).await {
                // What was done is done; that it was asked for is written down.
                tracing::error!(key = %key.id().short(), %error, "semel: the end of an action was not written to the audit log");
            }
        }
        answers
    }
}
