//! The page of a measurement: tables in markdown, a chart in SVG, and everything as JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::chart::{Panel, draw};
use super::rows::{Bar, Case, Metric, Row, Rows, Spread, float};
use crate::folder::workspace;

/// What a measurement found, and how it is shown.
pub(crate) struct Page {
    name: &'static str,
    /// A title and sections in markdown, with the names of values in braces.
    template: String,
    values: BTreeMap<&'static str, String>,
    facts: Vec<(&'static str, String)>,
    settings: Map<String, Value>,
    pub(crate) rows: Rows,
    pub(crate) bars: Vec<Bar>,
    panels: Vec<Panel>,
    /// Bars of the chart that are semel's, beside those whose name starts with `semel`.
    pub(crate) own: &'static [&'static str],
    /// Whether only a part was measured: it must not replace the results of the whole.
    pub(crate) is_part: bool,
}

impl Page {
    /// Starts with the facts about the machine and the build, and the settings of the run.
    pub(crate) fn new(
        name: &'static str,
        template: impl Into<String>,
        settings: &impl Serialize,
    ) -> Result<Self> {
        let mut settings: Map<_, _> = serde_json::from_value(serde_json::to_value(settings)?)?;
        // Paths of a machine say nothing about its numbers.
        settings.retain(|name, value| {
            !value.is_null() && !["results", "folder", "semel"].contains(&name.as_str())
        });
        let (template, facts) = (template.into(), machine_and_build());
        let (values, rows, bars, panels, own, is_part) = Default::default();
        Ok(Self { name, template, values, facts, settings, rows, bars, panels, own, is_part })
    }

    pub(crate) fn fact(&mut self, name: &'static str, value: impl Into<String>) {
        self.facts.push((name, value.into()));
    }

    /// Waits a second, and notes how busy other processes are.
    pub(crate) fn fact_other_processes(&mut self) {
        let share = crate::timing::OtherProcesses::share_while_idle() * 100.0;
        self.fact("other processes", format!("{share:.0}% of the machine before the first window"));
    }

    pub(crate) fn value(&mut self, name: &'static str, value: impl Into<String>) {
        self.values.insert(name, value.into());
    }

    /// The table of one kind of work, which is the value of that name.
    pub(crate) fn table(&mut self, work: &'static str, columns: &[Column<'_>]) {
        let cells = |row: &Row| columns.iter().map(|column| (column.cell)(&self.rows, row)).collect();
        let heading: Vec<&str> = columns.iter().map(|column| column.heading.as_str()).collect();
        let lines: Vec<Vec<String>> = self.rows.of(work).map(cells).collect();
        self.value(work, table(&heading, &lines).trim_end());
    }

    pub(crate) fn panel(&mut self, panel: Panel) {
        self.panels.push(panel);
    }

    /// Prints the page, and writes it as `NAME.md`, `NAME.svg` and `NAME.json`; by default to `results` of this workspace.
    pub(crate) fn publish(&self, results: Option<&Path>) -> Result<()> {
        print!("{}", self.markdown());
        if self.is_part && results.is_none() {
            return Ok(());
        }
        let folder = results.map_or_else(|| workspace().join("results"), Path::to_path_buf);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let title = self.template.lines().next().unwrap_or_default().trim_start_matches("# ");
        let chart = draw(title, &self.notes(), self.own, &self.panels);
        for (extension, text) in [("md", self.markdown()), ("svg", chart), ("json", self.json()?)] {
            let path = folder.join(format!("{}.{extension}", self.name));
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// The template with its values; a section that lacks one was not measured, and is left out.
    fn markdown(&self) -> String {
        let mut sections = self.template.split("\n## ").map(|section| self.filled(section));
        let head = sections.next().flatten().unwrap_or_default();
        let (title, words) = head.split_once('\n').unwrap_or_default();
        let sections = sections.flatten().map(|section| format!("## {}\n\n", section.trim_end()));
        let sections: Vec<String> = sections.collect();
        let verdict = |bar: &Bar| if bar.reached { "reached" } else { "NOT reached" }.to_owned();
        let cells = |bar: &Bar| vec![bar.name.clone(), bar.wanted.clone(), bar.found.clone(), verdict(bar)];
        let bars: Vec<Vec<String>> = self.bars.iter().map(cells).collect();
        format!(
            "{title}\n\n{}.\n\nA number is the median of the rounds, with their minimum and maximum in parentheses; rounds are \
             interleaved. A ratio is\nthe median of the ratios of the same round.\n{words}\n{}## Bars\n\n{}",
            self.notes().join(".\n"),
            sections.concat(),
            table(&["", "wanted", "found", ""], &bars)
        )
    }

    fn filled(&self, section: &str) -> Option<String> {
        let (mut text, mut rest) = (String::new(), section);
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) = after.split_once('}')?;
            text = text + before + self.values.get(name)?;
            rest = behind;
        }
        Some(text + rest)
    }

    /// Facts about the machine, other facts, and settings, each as one line.
    fn notes(&self) -> Vec<String> {
        let facts = self.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>();
        let number = |value: &Value| value.as_u64().map_or_else(|| value.to_string(), grouped);
        let settings = self.settings.iter().map(|(name, value)| format!("{name}: {}", number(value)));
        let (machine, others) = facts.split_at(facts.len().min(4));
        let lines = [machine, others, &settings.collect::<Vec<_>>()].map(|pairs| pairs.join("; "));
        lines.into_iter().filter(|line| !line.is_empty()).collect()
    }

    fn json(&self) -> Result<String> {
        let Self { facts, settings, rows, bars, .. } = self;
        let facts: BTreeMap<_, _> = facts.iter().cloned().collect();
        let json = json!({ "facts": facts, "settings": settings, "rows": rows, "bars": bars });
        Ok(format!("{}\n", serde_json::to_string_pretty(&json)?))
    }
}

/// Facts that every report starts with.
pub(super) fn machine_and_build() -> Vec<(&'static str, String)> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    vec![
        ("cores", std::thread::available_parallelism().map_or(0, usize::from).to_string()),
        ("CPU", model.map_or("unknown", |(_, model)| model.trim()).to_owned()),
        ("system", format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned()),
        ("profile", env!("BENCH_PROFILE").to_owned()),
    ]
}

/// How a number is written: multiplied by the factor, with so many decimals.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) factor: f64,
    pub(crate) decimals: usize,
}

pub(crate) const WHOLE: Shown = Shown { factor: 1.0, decimals: 0 };
pub(crate) const TENTHS: Shown = Shown { factor: 1.0, decimals: 1 };
pub(crate) const HUNDREDTHS: Shown = Shown { factor: 1.0, decimals: 2 };
pub(crate) const THOUSANDTHS: Shown = Shown { factor: 1.0, decimals: 3 };
/// Of microseconds.
pub(crate) const MS: Shown = Shown { factor: 1e-3, decimals: 2 };
/// Of bytes.
pub(crate) const MIB: Shown = Shown { factor: 1.0 / 1_048_576.0, decimals: 0 };

impl Shown {
    pub(crate) fn text(self, number: f64) -> String {
        group_digits(&format!("{:.1$}", number * self.factor, self.decimals))
    }
}

type Cell<'a> = Box<dyn Fn(&Rows, &Row) -> String + 'a>;

pub(crate) struct Column<'a> {
    heading: String,
    cell: Cell<'a>,
}

impl<'a> Column<'a> {
    pub(crate) fn text(heading: &str, cell: impl Fn(Case) -> String + 'a) -> Self {
        Self { heading: heading.to_owned(), cell: Box::new(move |_, row| cell(row.case)) }
    }

    pub(crate) fn contestant() -> Self {
        Self::text("", |case| case.to_string())
    }

    pub(crate) fn load(heading: &str) -> Self {
        Self::text(heading, |case| grouped(case.load))
    }

    /// The median of the rounds; empty where there is no such number.
    pub(crate) fn median(heading: &str, metric: Metric, shown: Shown) -> Self {
        Self::spread(heading, metric, move |spread| shown.text(spread.median))
    }

    pub(crate) fn range(metric: Metric, shown: Shown) -> Self {
        Self::spread("(min to max)", metric, move |spread| {
            format!("({} to {})", shown.text(spread.min), shown.text(spread.max))
        })
    }

    fn spread(heading: &str, metric: Metric, text: impl Fn(Spread) -> String + 'a) -> Self {
        let cell = move |_: &Rows, row: &Row| row.spread(metric).map_or_else(String::new, &text);
        Self { heading: heading.to_owned(), cell: Box::new(cell) }
    }

    /// How many times the second case's number the first one's is.
    pub(crate) fn times(heading: &str, metric: Metric, of: impl Fn(Case) -> (Case, Case) + 'a) -> Self {
        let cell = move |rows: &Rows, row: &Row| {
            let (one, other) = of(row.case);
            format!("{:.2}×", rows.times(one, other, metric))
        };
        Self { heading: heading.to_owned(), cell: Box::new(cell) }
    }
}

/// A markdown table that also lines up where it is not rendered: the first column to the left, the others to the right.
fn table(heading: &[&str], lines: &[Vec<String>]) -> String {
    let heading: Vec<String> = heading.iter().map(|&cell| cell.to_owned()).collect();
    let width = |column: usize| {
        let cells = lines.iter().chain([&heading]).filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let row = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!(" {cell:<width$} |"),
            _ => format!(" {cell:>width$} |"),
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let rule = widths.iter().enumerate().map(|(column, width)| match column {
        0 => format!("{}|", "-".repeat(width + 2)),
        _ => format!("{}:|", "-".repeat(width + 1)),
    });
    let body: String = lines.iter().map(row).collect();
    format!("{}|{}\n{body}", row(&heading), rule.collect::<String>())
}

/// 1234567 as 1,234,567.
pub(crate) fn grouped(number: u64) -> String {
    WHOLE.text(float(number))
}

/// `1 caller`, `1,024 callers`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

fn group_digits(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut text = String::new();
    for (at, digit) in number.chars().enumerate() {
        if at < whole && (whole - at).is_multiple_of(3) && text.ends_with(|last: char| last.is_ascii_digit())
        {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_and_keeps_its_columns() {
        let text = table(&["", "n"], &[vec!["a".to_owned(), "1,000".to_owned()]]);
        assert_eq!(text, "|     |     n |\n|-----|------:|\n| a   | 1,000 |\n");
    }

    #[test]
    fn numbers_are_grouped_by_thousands_before_the_point_only() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(Shown { factor: 1.0, decimals: 4 }.text(-123_456.789), "-123,456.7890");
        assert_eq!(
            (WHOLE.text(f64::NAN), count(1, "caller"), count(2, "caller")),
            ("NaN".into(), "1 caller".into(), "2 callers".into())
        );
    }

    #[test]
    fn a_page_has_facts_settings_tables_and_verdicts_and_its_json_every_round() {
        let (own, peer) = (Case::new("cycles", "own").load(1_024), Case::new("cycles", "peer").load(1_024));
        let template = "# The title\n\nWords.\n\n## Cycles\n\n{cycles}\n\n## Replays\n\n{replays}\n";
        let settings = json!({ "keys": 1_000, "only": [] });
        let mut page = Page::new("name", template, &settings).unwrap();
        page.rows = crate::report::rates(&[(own, &[3_000.0, 1_000.0, 2_000.0]), (peer, &[1_000.0; 3])]);
        page.fact("filesystem", "ext4");
        page.bars.push(page.rows.at_least("own".to_owned(), 3.0, own, peer));
        let columns = [
            Column::contestant(),
            Column::load("callers"),
            Column::median("cycles/s", Metric::PerSecond, WHOLE),
            Column::range(Metric::PerSecond, WHOLE),
            Column::median("p99 ms", Metric::P99Us, MS),
            Column::times("× peer", Metric::PerSecond, |case| (case, case.contestant("peer"))),
        ];
        page.table("cycles", &columns);
        let text = page.markdown();
        for part in [
            "# The title\n\ncores: ",
            ".\nfilesystem: ext4.\nkeys: 1,000; only: [].\n",
            "\n\nWords.\n\n## Cycles\n\n|      | callers |",
            "| own  |   1,024 |    2,000 | (1,000 to 3,000) |        |  2.00× |\n",
            "| own | at least 3.0× peer | 2.00× | NOT reached |\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("Replays"), "what was not measured is left out: {text}");
        let json: Value = serde_json::from_str(&page.json().unwrap()).unwrap();
        assert_eq!(json["facts"]["profile"], env!("BENCH_PROFILE"));
        assert_eq!(json["rows"][0]["contestant"], "own");
        assert_eq!(json["rows"][0]["rounds"][2]["per_second"], 2_000.0);
        assert_eq!((&json["bars"][0]["reached"], &json["settings"]["keys"]), (&false.into(), &1_000.into()));
    }

    #[test]
    fn every_report_names_the_profile_it_was_built_with() {
        let facts = machine_and_build();
        let (_, profile) = facts.iter().find(|(name, _)| *name == "profile").unwrap();
        let program = std::env::current_exe().unwrap();
        assert!(program.iter().any(|folder| folder == profile.as_str()), "{profile}: {}", program.display());
    }
}
