//! The rights that a role needs on semel's tables, checked before anything is asked: a right that is missing would else be
//! found out by the complete of work that ran.

use semel::store::{Finding, Verdict};
use semel::{Error, ErrorKind, Result};

use crate::wire::Wire;

/// The least that a role needs: object, kind of object, rights.
const NEEDED: [(&str, &str, &[&str]); 5] = [
    ("semel_records", "table", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("semel_version", "sequence", &["USAGE", "UPDATE"]),
    ("semel_schema", "table", &["SELECT"]),
    ("semel_waiters", "table", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("semel_timelines", "table", &["INSERT", "SELECT"]),
];

/// The rights that the role of this connection lacks, as the `GRANT` that gives them; `None` if it lacks none.
async fn missing(wire: &Wire) -> Result<Option<String>> {
    let each = NEEDED.iter().flat_map(|(object, kind, rights)| {
        rights.iter().map(move |right| {
            format!("SELECT '{object}', '{kind}', '{right}', has_{kind}_privilege('{object}', '{right}')")
        })
    });
    let text = format!(
        "SELECT 'GRANT ' || string_agg(r, ', ') || ' ON ' || kind || ' ' || o || ' TO ' || quote_ident(current_user) \
         FROM ({}) AS needed(o, kind, r, is_there) WHERE NOT is_there GROUP BY o, kind ORDER BY o",
        each.collect::<Vec<_>>().join(" UNION ALL ")
    );
    let grants: Vec<_> =
        wire.read(&text).await?.into_iter().filter_map(|mut row| row.pop().flatten()).collect();
    Ok((!grants.is_empty()).then(|| grants.join("; ")))
}

/// Refuses a role that lacks a right.
pub(crate) async fn demand(wire: &Wire) -> Result<()> {
    match missing(wire).await? {
        None => Ok(()),
        Some(grants) => Err(Error::new(
            ErrorKind::Invalid,
            format!("the role lacks rights on semel's tables; as their owner, run: {grants}"),
        )),
    }
}

/// The same for a report.
pub(crate) async fn finding(wire: &Wire) -> Result<Finding> {
    let missing = missing(wire).await?;
    let verdict = if missing.is_none() { Verdict::Kept } else { Verdict::Broken };
    Ok(Finding {
        setting: "set of rights".into(),
        found: Some(if missing.is_none() { "complete".into() } else { "incomplete".into() }),
        wanted: missing.map_or_else(|| "complete".into(), Into::into),
        verdict,
    })
}
