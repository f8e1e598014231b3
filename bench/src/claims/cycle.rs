//! Cycles of claim and complete as requests: written with as little as it takes, and checked for every mistake.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{Context, Result, bail, ensure};

use super::{BATCH, CONNECTIONS, Contestant, ECHO_PATH};
use crate::clients::{self, Client, Connection, Plan, lossy};
use crate::report::{Metric, Sample};

const OK: u16 = 200;
const PERMIT: &[u8] = b"\"permit\":\"";
const RUN: &[u8] = b"\"decision\":\"run\"";
const DONE: &[u8] = b"\"decision\":\"done\"";
/// What a small job came to: about as much as a charge is.
const OUTCOME: &str = r#"{"json":{"id":"ch_81726354","amount":4200,"currency":"eur","status":"succeeded"}}"#;

/// What a worker claims.
fn claim(number: u64) -> String {
    format!(r#"{{"scope":["acme"],"operation":"charge","name":"order-{number:012}","owner":"worker-7"}}"#)
}

fn complete(permit: &str) -> String {
    format!(r#"{{"permit":"{permit}","outcome":{OUTCOME}}}"#)
}

fn batch(items: impl Iterator<Item = String>) -> String {
    format!(r#"{{"items":[{}]}}"#, items.collect::<Vec<_>>().join(","))
}

fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// How many numbers a cycle of one connection takes.
fn width(contestant: Contestant) -> u64 {
    if matches!(contestant, Contestant::Batched(_)) { BATCH } else { 1 }
}

/// The first request of a cycle.
fn first(contestant: Contestant, number: u64) -> Vec<u8> {
    match contestant {
        Contestant::Echo | Contestant::Redis => post(ECHO_PATH, &claim(number)),
        Contestant::Single(_) => post("/v1/claim", &claim(number)),
        Contestant::Batched(_) => {
            post("/v1/claim/batch", &batch((0..width(contestant)).map(|more| claim(number + more))))
        }
    }
}

/// The second, from the answer to the first; none, if the cycle is over. Every key must have been granted.
fn second(contestant: Contestant, number: u64, answer: &[u8]) -> Result<Option<Vec<u8>>> {
    if contestant == Contestant::Echo {
        ensure!(answer == claim(number).as_bytes(), "the echo of {number} is {}", lossy(answer));
        return Ok(None);
    }
    let permits = permits(answer)?;
    let wanted = usize::try_from(width(contestant))?;
    ensure!(
        permits.len() == wanted && count(answer, RUN) == wanted,
        "{wanted} new keys were claimed, and the answer is {}",
        lossy(answer)
    );
    Ok(Some(match (contestant, permits.as_slice()) {
        (Contestant::Single(_), [permit]) => post("/v1/complete", &complete(permit)),
        (_, permits) => post("/v1/complete/batch", &batch(permits.iter().map(|permit| complete(permit)))),
    }))
}

/// Whether everything was done.
fn last(contestant: Contestant, answer: &[u8]) -> Result<()> {
    let wanted = usize::try_from(width(contestant))?;
    ensure!(count(answer, DONE) == wanted, "{wanted} were completed, and the answer is {}", lossy(answer));
    Ok(())
}

/// Every permit in an answer, in order.
fn permits(answer: &[u8]) -> Result<Vec<&str>> {
    let mut found = Vec::new();
    let mut rest = answer;
    while let Some(at) = find(rest, PERMIT) {
        rest = &rest[at + PERMIT.len()..];
        let Some(end) = rest.iter().position(|byte| *byte == b'"') else { bail!("a permit has no end") };
        found.push(std::str::from_utf8(&rest[..end]).context("a permit is text")?);
        rest = &rest[end..];
    }
    Ok(found)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|here| here == wanted)
}

fn count(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).filter(|here| *here == wanted).count()
}

/// Sends cycles for a while. The rate is of keys claimed and completed, or of echoes.
pub(super) fn window(contestant: Contestant, plan: Plan) -> Result<Sample> {
    let next = Rc::new(Cell::new(0));
    let client = |_| Worker { contestant, next: Rc::clone(&next) };
    let mut sample = clients::window(plan, (0..CONNECTIONS).map(client).collect())?;
    let requests = sample.get(&Metric::PerSecond).map(|rate| rate * contestant.requests_per_cycle());
    sample.extend(requests.map(|rate| (Metric::RequestsPerSecond, rate)));
    Ok(sample)
}

struct Worker {
    contestant: Contestant,
    /// The next key, of all connections.
    next: Rc<Cell<u64>>,
}

impl Client for Worker {
    async fn turn(&mut self, connection: &mut Connection) -> Result<u64> {
        let (contestant, width) = (self.contestant, width(self.contestant));
        let number = self.next.replace(self.next.get() + width);
        let (_, body) = connection.ask(&first(contestant, number), OK).await?;
        if let Some(next) = second(contestant, number, body)? {
            let (_, body) = connection.ask(&next, OK).await?;
            last(contestant, body)?;
        }
        Ok(width)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::Router;
    use axum::routing::post;

    use super::super::echo;
    use super::*;
    use crate::process::{SemelStore, served};

    const SINGLE: Contestant = Contestant::Single(SemelStore::Memory);

    fn measured(contestant: Contestant, router: Router) -> Result<Sample> {
        let plan = Plan { port: served(router), pid: std::process::id(), span: Duration::from_millis(60) };
        window(contestant, plan)
    }

    fn answering(complete: &'static str) -> Router {
        let run = r#"{"decision":"run","id":"00","permit":"p1.a","attempt":1,"fence":1,"lease_ms":60000,"steps":[]}"#;
        Router::new()
            .route("/v1/claim", post(async move || run))
            .route("/v1/complete", post(async move || complete))
    }

    #[test]
    fn permits_are_taken_from_an_answer_in_their_order() {
        let answer = br#"{"decision":"run","id":"ab","permit":"p1.xy","attempt":1}"#;
        let next = second(SINGLE, 7, answer).unwrap().unwrap();
        assert!(lossy(&next).contains(r#"{"permit":"p1.xy","outcome":"#), "{}", lossy(&next));
        assert!(second(SINGLE, 7, br#"{"decision":"busy"}"#).is_err());
        assert!(last(SINGLE, br#"{"decision":"lost"}"#).is_err());
        last(SINGLE, br#"{"decision":"done","remembered_until":null}"#).unwrap();
    }

    #[test]
    fn an_echo_of_something_else_is_found_out() {
        assert_eq!(second(Contestant::Echo, 7, claim(7).as_bytes()).unwrap(), None);
        assert!(second(Contestant::Echo, 7, claim(8).as_bytes()).is_err());
    }

    #[test]
    fn a_window_counts_echoes_and_cycles() {
        let echo = measured(Contestant::Echo, echo()).unwrap();
        assert!(echo[&Metric::PerSecond] > 0.0 && echo[&Metric::P50Us] <= echo[&Metric::P99Us], "{echo:?}");
        let cycles = measured(SINGLE, answering(r#"{"decision":"done"}"#)).unwrap();
        assert!(cycles[&Metric::RequestsPerSecond] > cycles[&Metric::PerSecond], "{cycles:?}");
    }

    #[test]
    fn a_run_that_was_lost_is_found_out() {
        let error = measured(SINGLE, answering(r#"{"decision":"lost"}"#)).unwrap_err();
        assert!(format!("{error:#}").contains("lost"), "{error:#}");
    }
}
