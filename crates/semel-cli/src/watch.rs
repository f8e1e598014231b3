//! `semel watch`: counts by state, again and again.

use std::time::Duration;

use anyhow::Result;
use console::Term;
use semel_ops::lookup::{Counted, walk};
use semel_ops::store_url::Address;

use crate::args::{at_least_one, refused};
use crate::stats;
use crate::store_arg::StoreArg;
use crate::terminal::{Column, Stopwatch, Table, moment, out, span, style};

#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// From one look to the next
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = span::parse)]
    every: Duration,
    /// End after so many looks
    #[arg(long, value_name = "N")]
    looks: Option<usize>,
    /// End after this time
    #[arg(long = "for", value_name = "SPAN", value_parser = span::parse)]
    span: Option<Duration>,
    /// Print one JSON object a look
    #[arg(long)]
    json: bool,
}

/// One look.
struct Look {
    tally: Counted,
    at: Duration,
    clock: String,
}

impl WatchArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        if self.every < Duration::from_millis(10) {
            return Err(refused("--every is under 10ms; every look reads the whole store").into());
        }
        let most = self.looks.map(|looks| at_least_one("--looks", looks)).transpose()?;
        let address = store.address()?;
        let store = store.open_existing().await?;
        let watch = Stopwatch::start();
        let (mut before, mut drawn, mut looks): (Option<Look>, usize, usize) = (None, 0, 0);
        loop {
            let started = watch.elapsed();
            let now = moment::shown(walk::now(&**store).await?);
            let look = Look { tally: stats::count(&store).await?, at: watch.elapsed(), clock: now };
            drawn = self.draw(&address, before.as_ref(), &look, drawn)?;
            before = Some(look);
            looks = looks.saturating_add(1);
            let next = started.saturating_add(self.every);
            if most.is_some_and(|most| looks >= most.get()) || self.span.is_some_and(|span| next > span) {
                return Ok(());
            }
            // A look through many records may take longer than that: then the next begins at once.
            tokio::time::sleep(next.saturating_sub(watch.elapsed())).await;
        }
    }

    /// Draws over what was drawn before; without a terminal, one line a look. Says how many lines it took.
    fn draw(&self, store: &Address, before: Option<&Look>, look: &Look, drawn: usize) -> Result<usize> {
        if self.json {
            return out::json(&stats::json(&look.tally, ("at", look.clock.clone()))).map(|()| 0);
        }
        let Some(width) = out::width() else {
            return out::line(&line(look)).map(|()| 0);
        };
        let mut lines = vec![format!("{store}   {}", look.clock), String::new()];
        lines.extend(table(before, look).lines(Some(width)));
        let (took, every) = (span::shown(look.tally.took), span::shown(self.every));
        let quiet = format!("counted in {took}, every {every}; end with Ctrl-C");
        lines.push(style::quiet().apply_to(quiet).to_string());
        Term::stdout().clear_last_lines(drawn)?;
        out::print(&(lines.join("\n") + "\n"))?;
        Ok(lines.len())
    }
}

fn line(look: &Look) -> String {
    let Look { tally, clock, .. } = look;
    let Counted { running, lapsed, held, done, released, .. } = tally;
    format!("{clock}  running {running}  lapsed {lapsed}  held {held}  done {done}  released {released}")
}

fn table(before: Option<&Look>, look: &Look) -> Table {
    let mut table =
        Table::new(vec![Column::whole("state"), Column::number("records"), Column::number("a second")]);
    for state in stats::STATES {
        let rate = before.map_or_else(String::new, |before| rate(before, look, state.1));
        table.row(stats::row(&look.tally, state, &rate));
    }
    table
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
