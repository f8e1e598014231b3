//! What both sides counted, beside each other, and whether it is as it should be.

use super::bank::Books;
use super::client::{Seen, Tally};
use crate::terminal::{Cell, Column, Table, counted, grouped, out, style};

/// How wide the names of runs are in a verdict.
const WIDTH: usize = 14;

/// One run, as clients and the API counted it.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub(super) clients: Tally,
    pub(super) api: Books,
    /// How often the proxy was killed and started again.
    pub(super) kills: u64,
}

impl Run {
    /// Whether every payment was charged exactly once.
    pub(super) fn is_exact(&self) -> bool {
        self.api.charges() == self.clients.of(Seen::Wanted) && self.api.charged_again() == 0
    }
}

/// What is counted, by whom, and how to find it in a run.
type Row = (&'static str, &'static str, fn(&Run) -> u64);

const ROWS: [Row; 20] = [
    ("clients", "payments wanted", |run| run.clients.of(Seen::Wanted)),
    ("", "requests sent for them", |run| run.clients.of(Seen::Sent)),
    ("", "of which retries", |run| run.clients.of(Seen::Retried)),
    ("", "hung up while it ran", |run| run.clients.of(Seen::HungUp)),
    ("", "lost the answer", |run| run.clients.of(Seen::Lost)),
    ("", "were hung up on, or not connected", |run| run.clients.of(Seen::Dropped)),
    ("", "got 5xx", |run| run.clients.of(Seen::Failed)),
    ("", "got 409: ask again later", |run| run.clients.of(Seen::ToldToWait)),
    ("", "got 201 from a run", |run| run.clients.of(Seen::Paid)),
    ("", "got 201 from a replay", |run| run.clients.of(Seen::Replayed)),
    ("", "got 409: held for a person", |run| run.clients.of(Seen::Held)),
    ("", "reused the key for another amount", |run| run.clients.of(Seen::Reused)),
    ("", "and were refused (422)", |run| run.clients.of(Seen::Refused)),
    ("the proxy", "killed in the middle of a charge", |run| run.kills),
    ("the API", "requests seen", |run| run.api.requests()),
    ("", "answered 503, nothing charged", |run| run.api.overworked),
    ("", "charged, and hung up", |run| run.api.hung_up),
    ("", "asked by semel what it had charged", |run| run.api.lookups),
    ("", "charges made", |run| run.api.charges()),
    ("", "payments charged more than once", |run| run.api.charged_again()),
];

/// The two runs in numbers.
pub(super) fn table(without: &Run, with: &Run) -> String {
    let mut table = Table::new(vec![
        Column::whole("counted by"),
        Column::whole(""),
        Column::number("without semel"),
        Column::number("with semel"),
    ]);
    for (side, what, of) in ROWS {
        let side = Cell::styled(side, style::quiet());
        table.row(vec![side, Cell::new(what), number(of(without)), number(of(with))]);
    }
    table.lines(out::width()).join("\n")
}

fn number(number: u64) -> Cell {
    if number == 0 { Cell::styled("-", style::quiet()) } else { Cell::new(&grouped(number)) }
}

/// What a run came to, in one line.
pub(super) fn verdict(name: &str, run: &Run) -> String {
    let (wanted, charges) = (run.clients.of(Seen::Wanted), run.api.charges());
    let what = format!("{}, charged {}", counted(wanted, "payment"), counted(charges, "time"));
    if run.is_exact() {
        return format!("{} {:<WIDTH$} {what}", style::fine().apply_to("✓"), format!("{name}:"));
    }
    let more = charges.saturating_sub(wanted);
    let less = wanted.saturating_sub(charges);
    let off = match (more, less) {
        (0, 0) => format!(", and {} of them more than once", grouped(run.api.charged_again())),
        (0, _) => format!(", {} too few", grouped(less)),
        _ => format!(", {} too many", grouped(more)),
    };
    let mark = style::wrong().apply_to("✗");
    format!("{mark} {:<WIDTH$} {what}{}", format!("{name}:"), style::wrong().apply_to(off))
}

/// What needs a word of explanation.
pub(super) fn remark(with: &Run) -> Option<String> {
    (with.kills > 0).then(|| {
        let (kills, held) = (counted(with.kills, "time"), with.clients.of(Seen::Held));
        let rest = match held {
            0 => "and every client got one answer".to_owned(),
            _ => format!("and holds {} for a person where it got no answer", counted(held, "payment")),
        };
        format!(
            "The proxy was killed {kills} (kill -9) while the API charged, and started again. It finds in its store that\n\
             a charge had begun and not ended, asks the API what became of it (the probe of its configuration),\n\
             {rest}."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wanted: u64, charged: &[(&str, u64)]) -> Run {
        let clients = Tally([(Seen::Wanted, wanted), (Seen::Sent, wanted)].into());
        Run { clients, api: Books::of(charged), kills: 0 }
    }

    #[test]
    fn only_a_charge_for_every_payment_and_none_twice_is_as_it_should_be() {
        assert!(run(2, &[("p-1", 1), ("p-2", 1)]).is_exact());
        assert!(!run(2, &[("p-1", 2)]).is_exact(), "the numbers agree, and a payment was charged twice");
        assert!(!run(2, &[("p-1", 1)]).is_exact());
        assert!(!run(1, &[("p-1", 1), ("p-2", 1)]).is_exact());
    }

    #[test]
    fn a_verdict_says_by_how_much_it_is_off() {
        let said = |run: Run| verdict("with semel", &run);
        assert!(said(run(1, &[("p-1", 1)])).contains("✓ with semel:    1 payment, charged 1 time"));
        assert!(said(run(1, &[("p-1", 3)])).contains("2 too many"));
        assert!(said(run(3, &[("p-1", 1)])).contains("2 too few"));
        assert!(said(run(2, &[("p-1", 2)])).contains("1 of them more than once"));
    }

    #[test]
    fn every_number_is_shown_where_it_was_counted() {
        let table = table(&run(7, &[("p-1", 1_234)]), &run(7, &[]));
        assert!(
            table.lines().any(|line| line.contains("charges made") && line.ends_with("1,234           -")),
            "{table}"
        );
        assert_eq!(table.lines().count(), ROWS.len() + 1);
    }

    #[test]
    fn kills_are_explained_and_what_they_left_behind_is_said() {
        assert_eq!(remark(&run(1, &[])), None);
        let mut killed = Run { kills: 3, ..run(1, &[]) };
        let said = remark(&killed).expect("explains");
        assert!(said.contains("killed 3 times") && said.contains("every client got one answer"), "{said}");
        killed.clients.0.insert(Seen::Held, 2);
        assert!(remark(&killed).is_some_and(|said| said.contains("holds 2 payments for a person")));
    }
}
