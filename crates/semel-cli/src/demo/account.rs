//! What both sides counted, beside each other, and whether it is as it should be.

use super::bank::Books;
use super::customer::Tally;
use crate::terminal::number::{counted, grouped};
use crate::terminal::table::{Cell, Column, Table};
use crate::terminal::{out, style};

/// One run, as clients and the API counted it.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub(super) clients: Tally,
    pub(super) api: Books,
}

impl Run {
    /// Whether every payment was charged exactly once.
    pub(super) fn is_exact(&self) -> bool {
        self.api.charges() == self.clients.wanted && self.api.charged_again() == 0
    }
}

/// The two runs in numbers.
pub(super) fn table(without: &Run, with: &Run) -> String {
    let mut table = Table::new(vec![
        Column::whole("counted by"),
        Column::whole(""),
        Column::number("without semel"),
        Column::number("with semel"),
    ]);
    let mut side = "clients";
    let mut row = |what: &str, of: &dyn Fn(&Run) -> u64| {
        table.row(vec![
            Cell::styled(side, style::quiet()),
            Cell::new(what),
            number(of(without)),
            number(of(with)),
        ]);
        side = "";
    };
    row("payments wanted", &|run| run.clients.wanted);
    row("requests sent for them", &|run| run.clients.sent);
    row("of which retries", &|run| run.clients.retried);
    row("hung up while it ran", &|run| run.clients.hung_up);
    row("lost the answer", &|run| run.clients.lost);
    row("were hung up on", &|run| run.clients.dropped);
    row("told 5xx", &|run| run.clients.failed);
    row("told that it still runs (409)", &|run| run.clients.told_to_wait);
    row("answered by a run (201)", &|run| run.clients.paid);
    row("answered by a replay (201)", &|run| run.clients.replayed);
    row("told that a person must look (409)", &|run| run.clients.held);
    row("reused the key for another amount", &|run| run.clients.reused);
    row("and were refused (422)", &|run| run.clients.refused);
    side = "the API";
    let mut row = |what: &str, of: &dyn Fn(&Run) -> u64| {
        table.row(vec![
            Cell::styled(side, style::quiet()),
            Cell::new(what),
            number(of(without)),
            number(of(with)),
        ]);
        side = "";
    };
    row("requests seen", &|run| run.api.requests());
    row("answered 503, nothing charged", &|run| run.api.overworked);
    row("charged, and hung up", &|run| run.api.hung_up);
    row("charges made", &|run| run.api.charges());
    row("payments charged more than once", &|run| run.api.charged_again());
    table.lines(out::width()).join("\n")
}

fn number(number: u64) -> Cell {
    if number == 0 { Cell::styled("-", style::quiet()) } else { Cell::new(&grouped(number)) }
}

/// What a run came to, in one line.
pub(super) fn verdict(name: &str, run: &Run) -> String {
    let (wanted, charges) = (run.clients.wanted, run.api.charges());
    let what = format!("{}, charged {} times", counted(wanted, "payment"), grouped(charges));
    if run.is_exact() {
        return format!("{} {name}: {what}", style::fine().apply_to("✓"));
    }
    let more = charges.saturating_sub(wanted);
    let less = wanted.saturating_sub(charges);
    let off = match (more, less) {
        (0, 0) => format!(", and {} of them more than once", grouped(run.api.charged_again())),
        (0, _) => format!(", {} too few", grouped(less)),
        _ => format!(", {} too many", grouped(more)),
    };
    format!("{} {name}: {what}{}", style::wrong().apply_to("✗"), style::wrong().apply_to(off))
}

/// What needs a word of explanation.
pub(super) fn remark(with: &Run) -> Option<String> {
    let held = with.clients.held;
    (held > 0).then(|| {
        let what = counted(held, "payment");
        format!(
            "The API hung up on {what} after it was asked to charge. Nobody can know whether it did, so semel does not ask it\n\
             again: the key is held until a person has looked (`semel keys list --state held`, `semel keys resolve`)."
        )
    })
}
