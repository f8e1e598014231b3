//! Walks the tree, applies every rule, and prints what is wrong.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::exceptions::{EXCEPTIONS, Exception};
use super::source::{Fault, Source};
use super::{manifests, names, purity, shape, words};
use xtask::run;

/// Check the style of the tree: shapes, names, words, the machine's purity, the manifests.
///
/// Prints one line for each fault, with its place and what to do instead.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {}

/// The rules that look at one file alone.
const RULES: [fn(&Source) -> Vec<Fault>; 12] = [
    shape::opening,
    shape::length,
    shape::functions,
    shape::module_files,
    names::files,
    names::tests,
    words::left_overs,
    words::machine_paths,
    words::vocabulary,
    purity::machine,
    manifests::lints,
    manifests::core,
];

/// What nobody writes by hand.
const SKIPPED: [&str; 6] = ["target", ".git", "mutants.out", "mutants.out.old", "semel-data", "Cargo.lock"];

pub(crate) fn run(_: &Args) -> Result<()> {
    run::started("tidy");
    let mut tree = Vec::new();
    collect(&run::root(), "", &mut tree)?;
    tree.sort_by(|a, b| a.path.cmp(&b.path));
    let faults = check(&tree, EXCEPTIONS);
    for (path, fault) in &faults {
        eprintln!("{path}:{}: {} [{}]", fault.line, fault.message, fault.rule);
    }
    ensure!(faults.is_empty(), "tidy found {} faults in {} files", faults.len(), tree.len());
    run::passed(&format!("{} files are tidy", tree.len()));
    Ok(())
}

/// Every fault that no exception lets through, and every exception without a fault.
fn check(tree: &[Source], exceptions: &[Exception]) -> Vec<(String, Fault)> {
    let design = tree.iter().find(|source| source.path == "DESIGN.md").map_or("", |source| &source.text);
    let of_file = |source: &Source| -> Vec<(String, Fault)> {
        let alone = RULES.iter().flat_map(|rule| rule(source));
        alone.chain(manifests::reasons(source, design)).map(|fault| (source.path.clone(), fault)).collect()
    };
    let all: Vec<_> = tree.iter().flat_map(of_file).collect();
    let lets_through =
        |exception: &Exception, (path, fault): &(String, Fault)| exception.lets_through(path, fault);
    let unused: Vec<_> = exceptions
        .iter()
        .filter(|exception| !all.iter().any(|found| lets_through(exception, found)))
        .map(|exception| ("xtask/src/tidy/exceptions.rs".to_owned(), exception.unused()))
        .collect();
    let kept =
        all.into_iter().filter(|found| !exceptions.iter().any(|exception| lets_through(exception, found)));
    kept.chain(unused).collect()
}

/// Every text file below `folder`. The tree is walked, not asked of git: an archive of it is tidy too.
fn collect(folder: &Path, prefix: &str, tree: &mut Vec<Source>) -> Result<()> {
    let listing = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in listing {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), &format!("{path}/"), tree)?;
        } else if kind.is_file()
            && let Ok(text) = String::from_utf8(fs::read(entry.path())?)
        {
            // What is not text has no style.
            tree.push(Source::new(path, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_hides_its_fault_and_is_itself_a_fault_when_unused() {
        let breaks = [Source::new("crates/a/src/a.rs", "//! A checksum.\n")];
        let exceptions = [Exception { rule: "vocabulary", about: "checksum", path: "crates/a/", reason: "" }];
        assert_eq!(check(&breaks, &exceptions).len(), 0);
        assert_eq!(check(&breaks, &[]).len(), 1);
        let unused = check(&[], &exceptions);
        assert_eq!((unused.len(), unused[0].1.rule), (1, "exceptions"));
    }

    #[test]
    fn every_rule_is_applied_to_every_file() {
        let source = Source::new("crates/semel/src/machine/mod.rs", "fn f() { SystemTime; }\n");
        let rules: Vec<_> = check(&[source], &[]).into_iter().map(|(_, fault)| fault.rule).collect();
        assert_eq!(rules, ["opening", "module files", "purity"]);
    }

    #[test]
    fn the_design_gives_the_reasons() {
        let manifest = "[package]\n[dependencies]\nsha2 = \"1\"\n[lints]\nworkspace = true\n";
        let tree =
            |design: &str| [Source::new("crates/a/Cargo.toml", manifest), Source::new("DESIGN.md", design)];
        assert_eq!(check(&tree(""), &[]).len(), 1);
        assert_eq!(check(&tree("- `sha2`: ids\n"), &[]).len(), 0);
    }
}
