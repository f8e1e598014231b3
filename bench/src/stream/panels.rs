//! Which numbers become which bars.

use super::place::Place;
use super::results::{Line, Results, Work};
use crate::report::grouped;
use crate::report::svg::{Bar, Group, Panel, draw};

/// Told apart by lightness too, for those who do not see the hues.
const COLOURS: [(&str, &str); 2] = [(NEW, "#1d5fa8"), (DUPLICATES, "#d4a72c")];
const NEW: &str = "new events";
const DUPLICATES: &str = "duplicates";

/// The chart of a run.
pub(super) fn chart(results: &Results) -> String {
    let note = format!(
        "{} on {}; {} receipts loaded; offset committed once a batch; median and range of {} round{}",
        results.servers,
        results.facts.cpu,
        grouped(results.settings.events),
        results.settings.rounds,
        if results.settings.rounds == 1 { "" } else { "s" }
    );
    // A panel a store: their scales are too far apart for one.
    let panels: Vec<Panel> = Place::ALL.into_iter().map(|place| of_store(&results.lines, place)).collect();
    draw("Events through a pipeline, by store and by batch", &note, &COLOURS, &panels)
}

fn of_store(lines: &[Line], place: Place) -> Panel {
    let group = |line: &Line| Group {
        label: format!("batches of {}", grouped(line.batch)),
        bars: vec![bar(NEW, &line.new), bar(DUPLICATES, &line.duplicates)],
    };
    Panel {
        title: place.name().to_owned(),
        axis: "events per second: more is better; p99 is of a batch".to_owned(),
        groups: lines.iter().filter(|line| line.store == place.name()).map(group).collect(),
    }
}

fn bar(name: &str, work: &Work) -> Bar {
    Bar {
        name: name.to_owned(),
        value: work.per_second.median,
        low: work.per_second.min,
        high: work.per_second.max,
        label: format!("{:.0}  (p99 {:.1} ms)", work.per_second.median, work.batch_p99_us / 1e3),
    }
}
