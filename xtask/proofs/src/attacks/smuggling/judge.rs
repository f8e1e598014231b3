//! Whether a shape was read in one way: by what the client got, and by what the service saw.

use super::exchange::Exchange;
use super::shape::{Right, Shape};
use test_http::{Answer, Seen};

/// What one answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// The service's own, to the request with this target.
    Of(String),
    /// The proxy's own, or of a relay that gave up.
    Refusal(u16),
}

/// Everything that is wrong; nothing if all is right.
pub(super) fn faults(shape: &Shape, exchange: &Exchange, seen: &[Seen]) -> Vec<String> {
    let mut faults = Vec::new();
    at_the_service(shape, seen, &mut faults);
    at_the_client(shape, exchange, &mut faults);
    if saw(&exchange.after) != What::Of(shape.of("after")) {
        faults.push(format!("a request on another connection got {:?}", saw(&exchange.after)));
    }
    faults
}

fn at_the_service(shape: &Shape, seen: &[Seen], faults: &mut Vec<String>) {
    let (own, probe) = (shape.of("shape"), shape.of("probe"));
    let of_before = [shape.of("first"), shape.of("slow")];
    let mut passed = 0_usize;
    for seen in seen {
        if !seen.faults.is_empty() && seen.is_whole {
            faults.push(format!(
                "the service was sent `{}`: {}",
                seen.raw.escape_ascii(),
                seen.faults.join(", ")
            ));
        }
        let path = seen.target.split(['?', '#']).next().unwrap_or_default();
        if path.ends_with(&own) || (path.starts_with(&own) && !path.contains("smuggled/")) {
            passed += usize::from(seen.is_whole);
            body(shape, seen, faults);
        } else if path.contains("/smuggled") {
            faults.push(format!("the service was asked for {}", seen.target));
        } else if !seen.body.is_empty() && path == probe {
            faults.push("the probe got a body".to_owned());
        } else if path != probe && path != shape.of("after") && !of_before.iter().any(|before| before == path)
        {
            faults.push(format!("the service was asked for {}, which nobody sent", seen.target));
        }
    }
    if passed > 1 {
        faults.push(format!("the service was asked {passed} times"));
    }
}

fn body(shape: &Shape, seen: &Seen, faults: &mut Vec<String>) {
    let is_before = shape.before == super::shape::Before::Done;
    match &shape.right {
        Right::Passed(body) if seen.is_whole && seen.body != *body => faults.push(format!(
            "the service read a body of {} bytes, of which there are {}",
            seen.body.len(),
            body.len()
        )),
        Right::Refused if seen.is_whole => {
            faults.push("it was passed on, and nobody knows where it ends".to_owned());
        }
        Right::Answered(_) if !is_before => {
            faults.push("it was passed on, and should have been refused".to_owned());
        }
        Right::Passed(_) | Right::Refused | Right::Answered(_) => {}
    }
}

fn at_the_client(shape: &Shape, exchange: &Exchange, faults: &mut Vec<String>) {
    let (own, probe) = (shape.of("shape"), shape.of("probe"));
    let whats: Vec<_> = exchange.answers.iter().map(saw).collect();
    let is_own = |what: &What| matches!(what, What::Of(target) if target.contains(&own));
    let is_refusal = |what: &What| matches!(what, What::Refusal(400..));
    let is_probe = |what: &What| *what == What::Of(probe.clone());
    let is_right = match (&shape.right, whats.as_slice()) {
        // Closed without a word.
        (Right::Refused | Right::Passed(_), []) => true,
        (Right::Refused, [refusal]) if is_refusal(refusal) => true,
        // A stream is refused alone: the other one is none of its business.
        (Right::Refused | Right::Passed(_), [probe]) if shape.is_framed && is_probe(probe) => true,
        (Right::Refused, [refusal, probe]) if shape.is_framed => is_refusal(refusal) && is_probe(probe),
        (Right::Passed(_), [answer]) => is_own(answer) || is_refusal(answer),
        (Right::Passed(_), [answer, next]) => (is_own(answer) || is_refusal(answer)) && is_probe(next),
        (Right::Answered(statuses), [answer, rest @ ..]) => {
            let is_right = exchange.answers.first().is_some_and(|answer| statuses.contains(&answer.status));
            is_right
                && (is_own(answer) || is_refusal(answer))
                && matches!(rest, [] | [_])
                && rest.iter().all(is_probe)
        }
        // One that is being sent may be closed before its answer arrives: a reset goes before it.
        (Right::Answered(_), []) => exchange.is_closed,
        _ => false,
    };
    if !is_right {
        let statuses: Vec<_> = exchange.answers.iter().map(|answer| answer.status).collect();
        faults.push(format!("the client got {whats:?} ({statuses:?})"));
    }
    if !exchange.is_closed {
        faults.push("the connection stayed open".to_owned());
    }
    if !exchange.rest.is_empty() && !exchange.rest.starts_with(b"HTTP/1.") {
        let start = exchange.rest.get(..40).unwrap_or(&exchange.rest);
        faults.push(format!("the client got `{}`", start.escape_ascii()));
    }
}

fn saw(answer: &Answer) -> What {
    match answer.first("saw").and_then(|saw| saw.split_once(' ')) {
        Some((_, target)) => What::Of(target.to_owned()),
        None => What::Refusal(answer.status),
    }
}
