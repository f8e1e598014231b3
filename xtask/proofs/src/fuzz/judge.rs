//! What an answer breaks of what the document promises.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::document::{Document, Operation};
use super::schema::check;
use test_http::{Answer, Request};

const PROBLEM: &str = "application/problem+json";

/// Nothing, or what is wrong with the answer.
pub(super) fn judge(
    document: &Document,
    operation: &Operation,
    ask: &Request,
    answer: &Answer,
) -> Result<()> {
    let status = answer.status;
    ensure!(status < 500, "{status}: {}", answer.text());
    if status >= 400 {
        is_problem(answer, &ask.method)?;
    }
    let is_its_own = ask.method == operation.method || (ask.method == "HEAD" && operation.method == "GET");
    if !is_its_own && !is_described(document, ask, operation)? {
        ensure!(status == 405, "another method is answered with {status}");
        return Ok(());
    }
    if !is_its_own {
        return Ok(());
    }
    let promised = operation
        .answers
        .get(&status.to_string())
        .with_context(|| format!("{status} is not documented: {}", answer.text()))?;
    if ask.method == "HEAD" {
        return Ok(());
    }
    let kind = answer.media_type();
    ensure!(promised.is_empty() || promised.contains_key(kind), "{status} as {kind:?} is not documented");
    let is_json = kind.ends_with("json");
    match promised.get(kind).filter(|_| is_json) {
        Some(schema) => {
            check(document, schema, &answer.json()?).with_context(|| format!("the body of a {status}"))
        }
        None => Ok(()),
    }
}

/// Whether the other method that was asked with has an operation too.
fn is_described(document: &Document, ask: &Request, operation: &Operation) -> Result<bool> {
    let others = document.operations()?;
    let get_too = |method: &str| if method == "HEAD" { "GET".to_owned() } else { method.to_owned() };
    Ok(others.iter().any(|other| other.path == operation.path && other.method == get_too(&ask.method)))
}

/// An error is told as problem+json, with all of its members.
fn is_problem(answer: &Answer, method: &str) -> Result<()> {
    ensure!(
        answer.media_type() == PROBLEM,
        "{} is told as {:?}: {}",
        answer.status,
        answer.media_type(),
        answer.text()
    );
    if method == "HEAD" {
        return Ok(());
    }
    let problem = answer.json()?;
    for name in ["type", "title", "detail", "code"] {
        ensure!(problem.get(name).is_some_and(Value::is_string), "a problem without `{name}`: {problem}");
    }
    ensure!(problem.get("status") == Some(&json!(answer.status)), "a {} says {problem}", answer.status);
    Ok(())
}
