//! `semel watch`: counts by state, again and again.

use std::time::Duration;

use anyhow::Result;
use console::Term;
use semel_ops::lookup::{Counted, walk};
use semel_ops::store_url::Address;
use serde_json::json;

use crate::opening;
use crate::tally;
use crate::terminal::moment;
use crate::terminal::number::grouped;
use crate::terminal::stopwatch::Stopwatch;
use crate::terminal::table::{Cell, Column, Table};
use crate::terminal::{out, span, style};

/// What is to be watched, and for how long.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) store: Address,
    /// From the beginning of one look to the beginning of the next.
    pub(crate) every: Duration,
    /// How often to look; `None` until it is interrupted.
    pub(crate) looks: Option<u64>,
    /// How long to look; `None` until it is interrupted.
    pub(crate) span: Option<Duration>,
    pub(crate) json: bool,
}

/// One look.
struct Look {
    tally: Counted,
    at: Duration,
    clock: String,
}

pub(crate) async fn run(plan: &Watch) -> Result<()> {
    let store = opening::open_existing(&plan.store).await?;
    let watch = Stopwatch::start();
    let (mut before, mut drawn, mut looks): (Option<Look>, usize, u64) = (None, 0, 0);
    loop {
        let started = watch.elapsed();
        let now = moment::shown(walk::now(&*store).await?);
        let look = Look { tally: tally::of(&*store).await?, at: watch.elapsed(), clock: now };
        drawn = draw(plan, before.as_ref(), &look, drawn)?;
        before = Some(look);
        looks = looks.saturating_add(1);
        let next = started.saturating_add(plan.every);
        if plan.looks.is_some_and(|most| looks >= most) || plan.span.is_some_and(|span| next > span) {
            return Ok(());
        }
        // A look through many records may take longer than that: then the next begins at once.
        tokio::time::sleep(next.saturating_sub(watch.elapsed())).await;
    }
}

/// Draws over what was drawn before; without a terminal, one line a look. Says how many lines it took.
fn draw(plan: &Watch, before: Option<&Look>, look: &Look, drawn: usize) -> Result<usize> {
    if plan.json {
        let mut json = tally::json(&look.tally);
        if let Some(object) = json.as_object_mut() {
            object.insert("at".to_owned(), json!(look.clock));
        }
        return out::json(&json).map(|()| 0);
    }
    let Some(width) = out::width() else {
        return out::line(&line(look)).map(|()| 0);
    };
    let lines = lines(plan, before, look, width);
    let terminal = Term::stdout();
    terminal.clear_last_lines(drawn)?;
    out::print(&(lines.join("\n") + "\n"))?;
    Ok(lines.len())
}

fn line(look: &Look) -> String {
    let Look { tally, clock, .. } = look;
    let Counted { running, lapsed, held, done, released, .. } = tally;
    format!("{clock}  running {running}  lapsed {lapsed}  held {held}  done {done}  released {released}")
}

fn lines(plan: &Watch, before: Option<&Look>, look: &Look, width: usize) -> Vec<String> {
    let mut table =
        Table::new(vec![Column::whole("state"), Column::number("records"), Column::number("a second")]);
    let rate =
        |count: fn(&Counted) -> u64| before.map_or_else(String::new, |before| rate(before, look, count));
    let mut row = |word: &str, count: fn(&Counted) -> u64, colour: console::Style| {
        let found = count(&look.tally);
        let colour = if found == 0 { style::quiet() } else { colour };
        table.row(vec![Cell::styled(word, colour), Cell::new(&grouped(found)), Cell::new(&rate(count))]);
    };
    row("running", |tally| tally.running, style::fine());
    row("  lapsed", |tally| tally.lapsed, style::wrong());
    row("held", |tally| tally.held, style::waiting());
    row("done", |tally| tally.done, style::strong());
    row("released", |tally| tally.released, style::strong());
    let took = span::shown(look.tally.took);
    let quiet = |text: String| style::quiet().apply_to(text).to_string();
    let mut lines = vec![format!("{}   {}", plan.store, look.clock), String::new()];
    lines.extend(table.lines(Some(width)));
    lines.push(quiet(format!("counted in {took}, every {}; end with Ctrl-C", span::shown(plan.every))));
    lines
}

/// How fast a count grows or shrinks.
fn rate(before: &Look, look: &Look, count: fn(&Counted) -> u64) -> String {
    let (was, is) = (count(&before.tally), count(&look.tally));
    let seconds = look.at.saturating_sub(before.at).as_secs_f64().max(1e-3);
    #[expect(clippy::cast_precision_loss, reason = "a rate is read to three digits")]
    let a_second = is.abs_diff(was) as f64 / seconds;
    if is == was {
        return "0".to_owned();
    }
    format!("{}{a_second:.1}", if is > was { "+" } else { "−" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(done: u64, seconds: u64) -> Look {
        Look {
            tally: Counted { done, ..Counted::default() },
            at: Duration::from_secs(seconds),
            clock: String::new(),
        }
    }

    #[test]
    fn a_rate_is_the_difference_over_the_time_between_two_looks() {
        let done = |tally: &Counted| tally.done;
        assert_eq!(rate(&look(100, 1), &look(160, 3), done), "+30.0");
        assert_eq!(rate(&look(160, 1), &look(100, 3), done), "−30.0");
        assert_eq!(rate(&look(5, 1), &look(5, 1), done), "0");
    }
}
