//! What changes records: the server's own routes, each on just what was shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use semel::record::{Record, State};
use semel::{OperatorAnswer, Outcome, Result};
use semel_ops::operator::{EventNoted, OffsetMoved, Settlement, SuppliedResponse};
use semel_ops::record_json::OperatorAnswerView;
use semel_stream::{EventState, Pipeline, Position, Requeue, RequeueAsk};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use crate::args::Scope;
use crate::operator::Action;

impl Server {
    /// Acts on a record, if it is still what was shown.
    pub(crate) async fn act(&self, record: &Record, action: &Action) -> Result<OperatorAnswer> {
        let id = record.key.id();
        let (route, mut body) = match action {
            Action::Release { reason } => ("release", json!({ "reason": reason })),
            Action::Resolve(settlement) => ("resolve", resolve_body(settlement)),
        };
        if let Some(body) = body.as_object_mut() {
            body.insert("version".to_owned(), guard(record).into());
        }
        let find_out = format!("semel --store {} keys show {}", self.client().url(), id.short());
        let target = format!("/v1/records/{id}/{route}");
        let answer: OperatorAnswerView = self.client().post(&target, &body, &find_out).await?;
        Ok(answer.into())
    }

    /// Notes an event as processed.
    pub(crate) async fn record_event(
        &self,
        scope: &Scope,
        pipeline: &str,
        event: &str,
    ) -> Result<EventNoted> {
        let body = json!({ "scope": scope, "pipeline": pipeline, "event": event });
        let find_out = format!("semel --store {} receipts {pipeline} --event {event}", self.client().url());
        self.client().post("/v1/receipts/record", &body, &find_out).await
    }

    /// Sends dead letters back, one after the other; one answer for each.
    pub(crate) async fn requeue(
        &self,
        pipeline: &Pipeline,
        asks: &[RequeueAsk],
        reason: &str,
    ) -> Result<Vec<Requeue>> {
        let mut answers = Vec::with_capacity(asks.len());
        for ask in asks {
            let id = pipeline.run_key(&ask.event, 0)?.id();
            let body = json!({ "reason": reason, "requeues_before": ask.requeues_before });
            let find_out = format!("semel --store {} keys show {}", self.client().url(), id.short());
            let target = format!("/v1/records/{id}/requeue");
            let answer: RequeueAnswer = self.client().post(&target, &body, &find_out).await?;
            answers.push(answer.into());
        }
        Ok(answers)
    }

    /// Moves the offset of a stream, if it is still in this epoch.
    pub(crate) async fn move_offset(
        &self,
        scope: &Scope,
        pipeline: &str,
        stream: &str,
        to: Option<Position>,
        epoch: u64,
    ) -> Result<OffsetMoved> {
        let to = to.map(|position| position.to_string());
        let body =
            json!({ "scope": scope, "pipeline": pipeline, "stream": stream, "to": to, "epoch": epoch });
        let find_out = format!("semel --store {} offsets {pipeline}", self.client().url());
        self.client().post("/v1/offsets/move", &body, &find_out).await
    }
}

/// What the server says became of a dead letter that was to be sent back.
#[derive(Deserialize)]
struct RequeueAnswer {
    decision: String,
    number: Option<u32>,
}

impl From<RequeueAnswer> for Requeue {
    fn from(answer: RequeueAnswer) -> Self {
        let number = answer.number.unwrap_or_default();
        match &*answer.decision {
            "requeued" => Self::Requeued { number },
            "already_waiting" => Self::AlreadyWaiting { number },
            "not_kept" => Self::NotKept,
            "changed" => Self::Changed,
            "full" => Self::Full,
            "not_dead" => Self::NotDead(EventState::Processed),
            _ => Self::Unknown,
        }
    }
}

/// The run that was shown, by its fence: a lease that is renewed meanwhile does not make it another one.
fn guard(record: &Record) -> u64 {
    let fence = match &record.state {
        State::Running(_) | State::Held(_) => record.state.grant().fence.get(),
        State::Done(_) | State::Released(_) => 0,
    };
    // A record of release 0.1 may not know its fence.
    if fence == 0 { record.version.get() } else { fence }
}

fn resolve_body(settlement: &Settlement) -> Value {
    match settlement {
        Settlement::Response(response) => json!({ "response": response_body(response) }),
        Settlement::Outcome(outcome) => json!({ "outcome": outcome_body(outcome) }),
        Settlement::Release { reason } => json!({ "release": { "reason": reason } }),
    }
}

fn response_body(response: &SuppliedResponse) -> Value {
    let mut body = json!({ "status": response.status, "headers": response.headers });
    if let (Some(members), false) = (body.as_object_mut(), response.body.is_empty()) {
        members.insert("base64".to_owned(), STANDARD.encode(&response.body).into());
    }
    body
}

fn outcome_body(outcome: &Outcome) -> Value {
    json!({ "kind": outcome.kind().as_str(), "base64": STANDARD.encode(outcome.bytes()) })
}
