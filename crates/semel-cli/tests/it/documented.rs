//! What the documentation names is there: metrics, alerts, kinds of errors, codes, settings and files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use semel_server::api::problem::Code;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("is there")
}

/// All files below a folder whose names end so.
fn files(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("is a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, end, found);
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
}

/// The words of a text that look like the name of a metric of ours.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
    let is_metric = |word: &&str| {
        word.starts_with("semel_")
            && ["_total", "_seconds", "_lag", "_in_flight", "_runs", "_connections"]
                .iter()
                .any(|end| word.ends_with(end))
    };
    // A histogram is told as several series.
    words
        .map(|word| word.strip_suffix("_bucket").unwrap_or(word))
        .filter(is_metric)
        .map(str::to_owned)
        .collect()
}

/// Those that the program writes, wherever it is written.
fn written() -> BTreeSet<String> {
    let mut sources = Vec::new();
    for package in fs::read_dir(root().join("crates")).expect("is a folder").flatten() {
        files(&package.path().join("src"), ".rs", &mut sources);
    }
    let quoted = |path: PathBuf| {
        let text = fs::read_to_string(path).expect("is text");
        text.split('"').skip(1).step_by(2).flat_map(metrics).collect::<Vec<_>>()
    };
    sources.into_iter().flat_map(quoted).collect()
}

#[test]
fn every_metric_in_the_documentation_is_one_that_the_program_writes() {
    let mut pages = Vec::new();
    files(&root().join("docs"), ".md", &mut pages);
    files(&root().join("docs"), ".yml", &mut pages);
    let named: BTreeSet<_> =
        pages.iter().flat_map(|page| metrics(&fs::read_to_string(page).expect("is text"))).collect();
    let unknown: Vec<_> = named.difference(&written()).cloned().collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(named.len() > 10, "{named:?}");
    // The control: a metric that nobody writes would be noticed.
    assert!(!written().contains("semel_never_written_total"));
}

#[test]
fn every_alert_has_a_paragraph_and_every_paragraph_an_alert() {
    let (rules, page) = (read("docs/alerts.yml"), read("docs/operations.md"));
    let alerts: BTreeSet<_> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let paragraphs: BTreeSet<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .filter(|title| title.starts_with("Semel"))
        .collect();
    assert_eq!(alerts, paragraphs);
}

#[test]
fn every_kind_of_error_and_every_code_has_a_line_that_says_what_to_do() {
    let (page, kinds) = (read("docs/operations.md"), read("crates/semel/src/error.rs"));
    let (_, kinds) = kinds.split_once("pub enum ErrorKind {").expect("there are kinds");
    let (kinds, _) = kinds.split_once("\n}").expect("they end");
    let kinds: Vec<_> = kinds
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','))
        .filter(|word| word.chars().all(char::is_alphanumeric))
        .collect();
    assert!(kinds.len() >= 7, "{kinds:?}");
    for kind in kinds {
        assert!(page.contains(&format!("| `{kind}` |")), "{kind}");
    }
    for code in Code::ALL {
        assert!(
            page.contains(&format!("`{}` {}", code.as_str(), code.status().as_u16())),
            "{}",
            code.as_str()
        );
    }
}

/// The words of a text that look like a source file of ours, without a line number behind them.
fn sources(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
    let words = text.split(|c: char| !is_part(c)).map(|word| word.trim_matches('.'));
    words
        .filter(|word| Path::new(word).extension().is_some_and(|end| end == "rs"))
        .map(str::to_owned)
        .collect()
}

/// Whether a page may name a file so: by its whole path, or by the end of one.
fn is_source(named: &str, all: &[PathBuf]) -> bool {
    let named = Path::new(named.trim_start_matches(['.', '/']));
    all.iter().any(|path| path.ends_with(named))
}

#[test]
fn every_source_file_in_the_documentation_is_there() {
    let mut all = Vec::new();
    for folder in ["crates", "examples", "xtask", "bench/src", "bench/tests"] {
        files(&root().join(folder), ".rs", &mut all);
    }
    let mut pages = Vec::new();
    files(&root().join("docs"), ".md", &mut pages);
    pages.extend(["README.md", "ARCHITECTURE.md"].map(|page| root().join(page)));
    let mut count = 0;
    for page in pages {
        let text = fs::read_to_string(&page).expect("is text");
        for named in sources(&text) {
            assert!(is_source(&named, &all), "{}: {named}", page.display());
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
    // The control: a file that is not there is noticed, and so is one of another folder.
    assert!(
        !is_source("semel-http/src/never_written.rs", &all)
            && !is_source("semel-file/src/identity_of.rs", &all)
    );
}

#[test]
fn every_code_of_a_refusal_over_http_is_documented_once() {
    let page = read("docs/http.md");
    let (_, table) = page.split_once("## Refusals").expect("there is a table");
    let (table, _) = table.split_once("\n## ").expect("it ends");
    for code in semel_http::Code::ALL {
        let row = format!("| `{}` |", code.word());
        assert_eq!(table.matches(&row).count(), 1, "{row}");
    }
}

/// The page that lists all metrics.
fn metrics_page() -> String {
    let mut page = String::from(
        "# Metrics\n\nMade from `semel::metrics`; a test fails when it is not as the code is \
         (`SEMEL_WRITE_DOCS=1 cargo test -p semel-cli --all-features --test it the_metrics_page` writes it).\n\n\
         `semel serve` has those of engine, listener and monitoring at `/metrics`; `semel proxy` has those of the proxy too, on its admin \
         listener. Each series of a counter exists from the start, at 0, except where a label has no closed set of values.\n\n\
         | metric | kind | of | labels | meaning |\n|---|---|---|---|---|\n",
    );
    for metric in semel::metrics::ALL {
        let label = |label: &semel::metrics::MetricLabel| match label.values {
            [] => format!("`{}`", label.name),
            values => format!("`{}`: {}", label.name, values.join(", ")),
        };
        let labels = metric.labels.iter().map(label).collect::<Vec<_>>().join("; ");
        let (name, kind, part) =
            (metric.name, metric.kind.as_str(), format!("{:?}", metric.part).to_lowercase());
        page.extend(["| `", name, "` | ", kind, " | ", &part, " | ", &labels, " | ", metric.help, " |\n"]);
    }
    page
}

#[test]
fn the_metrics_page_is_what_the_code_says() {
    let (path, page) = (root().join("docs/metrics.md"), metrics_page());
    if std::env::var_os("SEMEL_WRITE_DOCS").is_some() {
        fs::write(&path, &page).expect("is written");
    }
    let there = fs::read_to_string(path).unwrap_or_default();
    assert!(there == page, "docs/metrics.md is stale; its first lines say how it is written");
}

#[test]
fn prometheus_takes_the_alert_rules() {
    let check = |path: &Path| {
        let command = std::process::Command::new("promtool").args(["check", "rules"]).arg(path).output();
        command.expect("promtool is in Debian's package prometheus").status.success()
    };
    assert!(check(&root().join("docs/alerts.yml")));
    // The control: a rule that is none is refused.
    let folder = tempfile::tempdir().expect("a folder for a test");
    let broken = folder.path().join("broken.yml");
    fs::write(&broken, read("docs/alerts.yml").replace("[10m]", "[10")).expect("is written");
    assert!(!check(&broken));
}
