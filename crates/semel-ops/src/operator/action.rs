//! One action of an operator on one record.

use semel::record::Record;
use semel::{ErrorKind, OperatorAnswer, Resolution, Result, Semel};

use super::{Action, Audit, Entry, Noted, Settlement};

/// An operator: acts through this engine, and is written down in this log under this name.
#[derive(Clone, Copy)]
pub struct Operator<'a> {
    /// Decides.
    pub semel: &'a Semel,
    /// Where actions are written down.
    pub audit: &'a Audit,
    /// Who acts.
    pub name: &'a str,
}

impl Operator<'_> {
    /// Releases a running or held record, if it is still what was shown: the next claim runs.
    pub async fn release(
        &self,
        record: &Record,
        reason: &str,
        version: Option<u64>,
    ) -> Result<OperatorAnswer> {
        let asked = self.asked(record, Action::Release, reason);
        self.audit.note(asked).await?;
        let settled = self.semel.release_shown(record, reason, version).await;
        self.note_end(asked, settled).await
    }

    /// Settles a held record, if it is still what was shown. What a retry could not get is refused before anything is written.
    pub async fn resolve(
        &self,
        record: &Record,
        settlement: &Settlement,
        version: Option<u64>,
    ) -> Result<OperatorAnswer> {
        let resolution = settlement.resolution(record)?;
        let (action, reason) = match (settlement, &resolution) {
            (_, Resolution::Release { reason }) => (Action::Release, reason.to_string()),
            (Settlement::Response(response), Resolution::Done(_)) => {
                let (status, bytes) = (response.status, response.body.len());
                (Action::Complete, format!("done with a response: {status}, {bytes} bytes"))
            }
            (_, Resolution::Done(outcome)) => {
                let (kind, bytes) = (outcome.kind().as_str(), outcome.bytes().len());
                (Action::Complete, format!("done with an outcome: {kind}, {bytes} bytes"))
            }
        };
        let asked = self.asked(record, action, &reason);
        self.audit.note(asked).await?;
        let settled = self.semel.resolve_shown(record, resolution, version).await;
        self.note_end(asked, settled).await
    }

    fn asked<'b>(&'b self, record: &'b Record, action: Action, reason: &'b str) -> Entry<'b> {
        let (key, seen) = (&record.key, Some(record.state.kind()));
        Entry { caller: self.name, action, key, seen, reason, result: Noted::Asked }
    }

    async fn note_end(&self, asked: Entry<'_>, settled: Result<OperatorAnswer>) -> Result<OperatorAnswer> {
        let result = match &settled {
            Ok(OperatorAnswer::Released | OperatorAnswer::Resolved) => Noted::Done,
            Err(error) if error.kind() == ErrorKind::Unknown => Noted::Unknown,
            Ok(OperatorAnswer::NotHeld | OperatorAnswer::Changed) | Err(_) => Noted::Refused,
        };
        self.note_result(asked, result).await;
        settled
    }

    pub(super) async fn note_result(&self, asked: Entry<'_>, result: Noted) {
        if let Err(error) = self.audit.note(Entry { result, ..asked }).await {
            // What was done is done; that it was asked for is written down.
            tracing::error!(key = %asked.key.id().short(), %error, "semel: the end of an action was not written to the audit log");
        }
    }
}
