//! Requests and answers as bytes: written with as little as it takes, read with as little as it takes to find a mistake.

use anyhow::{Context, Result, bail, ensure};

use super::echo;
use super::entry::{BATCH, Entry};
use crate::http::shown;

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
pub(super) fn width(entry: Entry) -> u64 {
    if matches!(entry, Entry::Batched(_)) { BATCH as u64 } else { 1 }
}

/// The first request of a cycle.
pub(super) fn first(entry: Entry, number: u64) -> Vec<u8> {
    match entry {
        Entry::Echo | Entry::Redis => post(echo::PATH, &claim(number)),
        Entry::Single(_) => post("/v1/claim", &claim(number)),
        Entry::Batched(_) => {
            post("/v1/claim/batch", &batch((0..width(entry)).map(|more| claim(number + more))))
        }
    }
}

/// The second, from the answer to the first; none, if the cycle is over. Every key must have been granted.
pub(super) fn second(entry: Entry, number: u64, answer: &[u8]) -> Result<Option<Vec<u8>>> {
    if entry == Entry::Echo {
        ensure!(answer == claim(number).as_bytes(), "the echo of {number} is {}", shown(answer));
        return Ok(None);
    }
    let permits = permits(answer)?;
    let wanted = usize::try_from(width(entry))?;
    ensure!(
        permits.len() == wanted && count(answer, RUN) == wanted,
        "{wanted} new keys were claimed, and the answer is {}",
        shown(answer)
    );
    Ok(Some(match (entry, permits.as_slice()) {
        (Entry::Single(_), [permit]) => post("/v1/complete", &complete(permit)),
        (_, permits) => post("/v1/complete/batch", &batch(permits.iter().map(|permit| complete(permit)))),
    }))
}

/// Whether everything was done.
pub(super) fn last(entry: Entry, answer: &[u8]) -> Result<()> {
    let wanted = usize::try_from(width(entry))?;
    ensure!(count(answer, DONE) == wanted, "{wanted} were completed, and the answer is {}", shown(answer));
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

#[cfg(test)]
mod tests {
    use super::super::entry::Store;
    use super::*;

    #[test]
    fn permits_are_taken_from_an_answer_in_their_order() {
        let entry = Entry::Single(Store::Memory);
        let answer = br#"{"decision":"run","id":"ab","permit":"p1.xy","attempt":1}"#;
        let next = second(entry, 7, answer).unwrap().unwrap();
        assert!(shown(&next).contains(r#"{"permit":"p1.xy","outcome":"#), "{}", shown(&next));
        assert!(second(entry, 7, br#"{"decision":"busy"}"#).is_err());
        assert!(last(entry, br#"{"decision":"lost"}"#).is_err());
        last(entry, br#"{"decision":"done","remembered_until":null}"#).unwrap();
    }

    #[test]
    fn an_echo_of_something_else_is_found_out() {
        assert_eq!(second(Entry::Echo, 7, claim(7).as_bytes()).unwrap(), None);
        assert!(second(Entry::Echo, 7, claim(8).as_bytes()).is_err());
    }
}
