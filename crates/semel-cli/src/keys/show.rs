//! The whole life of one record.

use anyhow::Result;
use semel::clock::Timestamp;
use semel::record::{Record, State};
use semel::{Lapse, Outcome, Reference};
use semel_http::HttpRecord;
use semel_ops::format::response::ResponseShown;
use semel_ops::record_json::{Content, RecordView};

use super::selector::{Found, KeyArg};
use super::settle::lines_shown;
use super::words;
use crate::store_arg::StoreArg;
use crate::terminal::text::is_printable;
use crate::terminal::{Cell, Column, Table, bytes, counted, grouped, moment, out, span, style, text};

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    key: KeyArg,
    /// Show the bytes of the outcome: as text, or as a hex dump; base64 in JSON
    #[arg(long)]
    outcome: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl ShowArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let selector = self.key.selector()?;
        let store = store.open_existing().await?;
        if self.outcome {
            store.must_show_content()?;
        }
        let found = selector.find(&**store).await?;
        show(&found, Shown { outcome: self.outcome, json: self.json })
    }
}

/// How a record is shown.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    /// With the bytes of its outcome: they may be secret, and they may be many.
    pub(crate) outcome: bool,
    pub(crate) json: bool,
}

pub(crate) fn show(Found { record, now }: &Found, shown: Shown) -> Result<()> {
    let now = *now;
    if shown.json {
        return out::json(&RecordView::of(record, now, content(shown.outcome)));
    }
    let mut lines = vec![style::strong().apply_to(text::shown(&words::key(record))).to_string()];
    lines.push(headline(record, now));
    lines.push(String::new());
    lines.extend(life(record, now).into_iter().map(|(name, value)| {
        let name = style::quiet().apply_to(format!("{name:<13}")).to_string();
        format!("  {name} {}", text::shown(&value))
    }));
    lines.extend(history(record));
    lines.push(String::new());
    lines.push(what_now(record, now));
    out::print(&(lines.join("\n") + "\n"))?;
    match record.outcome() {
        _ if !shown.outcome => Ok(()),
        Some(outcome) => print_outcome(record, outcome),
        None => out::line("\nThere is no outcome: the work is not done."),
    }
}

/// What scripts are shown of an outcome.
pub(super) fn content(with_bytes: bool) -> Content {
    if with_bytes { Content::Base64 } else { Content::Hidden }
}

/// State, since when, and what is left, in one line.
pub(super) fn headline(record: &Record, now: Timestamp) -> String {
    let word = style::of_state(record, now).apply_to(record.state.kind().as_str());
    let since = span::shown(now.since(words::since(record)));
    let left = words::left(record, now);
    let rest = match &record.state {
        State::Running(running) if running.lease_is_good(now) => {
            format!("for {since}; lease good for {left}")
        }
        State::Running(_) => format!("for {since}; lease {left} ago"),
        State::Done(_) => format!("{since} ago; remembered for {left}"),
        State::Released(_) => format!("{since} ago; its attempts are remembered for {left}"),
        State::Held(held) => format!("for {since}; reason: {}", text::shown(held.reason.as_str())),
    };
    format!("{word} {rest}")
}

/// Everything there is to know, in the order of a life.
fn life(record: &Record, now: Timestamp) -> Vec<(&'static str, String)> {
    let at = |when: Timestamp| format!("{}   {}", moment::shown(when), moment::relative(when, now));
    let mut life = vec![
        ("id", record.key.id().to_string()),
        ("scope", record.key.scope().collect::<Vec<_>>().join(" / ")),
        ("operation", record.key.operation().to_owned()),
        ("name", record.key.name().to_owned()),
        ("label", record.label.as_deref().unwrap_or_default().to_owned()),
        ("caller", HttpRecord::of(record).map(|http| http.caller().to_owned()).unwrap_or_default()),
        ("first seen", at(record.first_seen_at)),
    ];
    let first = if HttpRecord::of(record).is_some() { "first request" } else { "first event" };
    life.extend(record.first_event.as_ref().map(|id| (first, id.to_string())));
    life.push(("attempt", attempts(record)));
    life.extend(of_state(record, at));
    life.push(("last write", format!("{}   version {}", at(record.changed_at), record.version.get())));
    let unknown = "unknown: the run reported that it does not know whether its effect landed";
    life.extend(record.outcome_is_unknown().then(|| ("outcome", unknown.to_owned())));
    let steps = record
        .finished_steps()
        .map(|step| format!("{} ({})", step.name, bytes::size(step.value.len() as u64)));
    life.push(("steps done", steps.collect::<Vec<_>>().join(", ")));
    life.push(("on lapse", lapse(record.lapse).to_owned()));
    life.push(("retention", format!("{} once settled", span::shown(record.retention))));
    life.push(("duplicates", duplicates(record, at)));
    life.push(("mismatches", mismatches(record)));
    life.retain(|(_, value)| !value.is_empty());
    life
}

/// What only a record in this state has.
fn of_state(record: &Record, at: impl Fn(Timestamp) -> String) -> Vec<(&'static str, String)> {
    match &record.state {
        State::Running(running) => vec![
            ("owner", running.grant.owner.to_string()),
            ("granted", at(running.grant.granted_at)),
            ("renewed", at(running.leased_at)),
            ("lease", format!("{}, until {}", span::shown(running.lease), at(running.lease_until()))),
            ("fence", running.grant.fence.get().to_string()),
        ],
        State::Done(done) => {
            let mut lines = vec![
                ("owner", done.grant.owner.to_string()),
                ("completed", at(done.settled_at)),
                ("fence", done.grant.fence.get().to_string()),
            ];
            lines.extend(outcome(&done.outcome));
            lines
        }
        State::Released(released) => {
            vec![
                ("owner", released.grant.owner.to_string()),
                ("released", at(released.settled_at)),
                ("reason", released.reason.to_string()),
            ]
        }
        State::Held(held) => vec![
            ("owner", held.grant.owner.to_string()),
            ("held", at(held.held_at)),
            ("reason", held.reason.as_str().to_owned()),
        ],
    }
}

/// The attempts that are over, a line each.
fn history(record: &Record) -> Vec<String> {
    let mut table = Table::new(vec![
        Column::number("attempt"),
        Column::elastic("owner", 8),
        Column::whole("from"),
        Column::number("took"),
        Column::whole("ended"),
        Column::elastic("reason", 10),
    ]);
    let mut rows = 0_usize;
    for ended in record.history() {
        table.row(vec![
            Cell::new(&ended.number.to_string()),
            Cell::new(&ended.owner),
            Cell::new(&moment::shown(ended.from)),
            Cell::new(&span::shown(ended.until.since(ended.from))),
            Cell::new(ended.end.as_str()),
            Cell::new(&ended.reason),
        ]);
        rows = rows.saturating_add(1);
    }
    if rows == 0 {
        Vec::new()
    } else {
        [String::new()].into_iter().chain(table.lines(out::width())).collect()
    }
}

fn outcome(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let size = bytes::size(outcome.bytes().len() as u64);
    let mut lines = vec![("outcome", format!("{}, {size}", outcome.kind().as_str()))];
    let reference = |reference: &Reference| ("reference", format!("{} {}", reference.kind, reference.id));
    lines.extend(outcome.references().iter().map(reference));
    lines.extend(outcome.details_json().map(|details| ("details", details.to_owned())));
    lines
}

fn attempts(record: &Record) -> String {
    match record.attempts_forgiven {
        0 => record.attempt.to_string(),
        attempts_forgiven => {
            format!("{}, of which {attempts_forgiven} no longer count against a bound", record.attempt)
        }
    }
}

fn lapse(lapse: Lapse) -> &'static str {
    match lapse {
        Lapse::Rerun => "rerun: the next claim runs again",
        Lapse::Hold => "hold: an operator decides",
    }
}

fn duplicates(record: &Record, at: impl Fn(Timestamp) -> String) -> String {
    let count = grouped(record.duplicates.count);
    match record.duplicates.last_seen_at {
        Some(last) => format!("{count}, the last {}", at(last)),
        None => count,
    }
}

fn mismatches(record: &Record) -> String {
    let count = grouped(record.mismatches.count);
    match (record.mismatches.count, record.fingerprint) {
        (_, None) => format!("{count} (this key has no fingerprint: every request matches)"),
        (0, Some(_)) => count,
        (_, Some(_)) => {
            let requests = counted(record.mismatches.fingerprints.len() as u64, "other request");
            format!("{count}, by {requests} under this key")
        }
    }
}

/// What whoever was woken up may do.
fn what_now(record: &Record, now: Timestamp) -> String {
    let id = words::short(record);
    if let Some(Ok(response)) = HttpRecord::of(record).and_then(|http| http.response()) {
        return format!(
            "{} To see what is stored: --outcome",
            ResponseShown::of(&response).what_a_retry_gets()
        );
    }
    match (&record.state, record.lapse) {
        (State::Running(running), _) if running.lease_is_good(now) => format!(
            "A worker runs it and renews the lease. If you know that the worker is dead: semel keys release {id}"
        ),
        (State::Running(_), Lapse::Rerun) => {
            format!(
                "The worker stopped renewing. The next claim runs it as attempt {}.",
                record.attempt.saturating_add(1)
            )
        }
        // A run that lapsed under `hold` is shown as held.
        (State::Running(_), Lapse::Hold) | (State::Held(_), _) => format!(
            "It does not run again before an operator decides. Find out whether the effect landed, then:\n  \
             it did:      semel keys resolve {id} {}\n  \
             it did not:  semel keys resolve {id} --release",
            match HttpRecord::of(record) {
                Some(_) => "--status 201 --header 'NAME: VALUE' --body-file FILE",
                None => "--outcome-file FILE",
            }
        ),
        (State::Done(done), _) => {
            let bytes = done.outcome.bytes().len() as u64;
            format!("Every retry gets the stored outcome. To see its {}: --outcome", bytes::size(bytes))
        }
        (State::Released(_), _) => {
            format!("The next claim runs it as attempt {}.", record.attempt.saturating_add(1))
        }
    }
}

/// A response as a response; what no HTTP request made as text or as a hex dump.
fn print_outcome(record: &Record, outcome: &Outcome) -> Result<()> {
    match HttpRecord::of(record).and_then(|http| http.response()) {
        Some(response) => out::line(&format!("\n{}", lines_shown(&ResponseShown::of(&response?).text()))),
        None => print_bytes(outcome),
    }
}

fn print_bytes(outcome: &Outcome) -> Result<()> {
    out::line("")?;
    match std::str::from_utf8(outcome.bytes()) {
        Ok(text) if is_printable(text) => out::line(text),
        _ => out::print(&bytes::dump(outcome.bytes())),
    }
}
