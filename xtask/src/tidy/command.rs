//! Walks the tree, applies every rule, and prints what is wrong.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::manifests;
use super::text::{self, Fault, Source};
use xtask::run;

/// Check what neither the compiler nor clippy can say: first lines, left-overs, paths of one machine, the manifests.
///
/// Prints one line for each fault, with its place and what to do instead.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {}

/// The rules that look at one file alone.
const RULES: [fn(&Source) -> Vec<Fault>; 8] = [
    text::opening,
    text::module_files,
    text::left_overs,
    text::machine_paths,
    text::machine_imports,
    manifests::lints,
    manifests::core,
    manifests::drivers,
];

/// What nobody writes by hand.
const SKIPPED: [&str; 6] = ["target", ".git", "mutants.out", "mutants.out.old", "semel-data", "Cargo.lock"];

pub(crate) fn run(_: &Args) -> Result<()> {
    run::started("tidy");
    let mut tree = Vec::new();
    collect(&run::root(), "", &mut tree)?;
    tree.sort_by(|a, b| a.path.cmp(&b.path));
    let faults = check(&tree);
    for (path, fault) in &faults {
        eprintln!("{path}:{}: {} [{}]", fault.line, fault.message, fault.rule);
    }
    ensure!(faults.is_empty(), "tidy found {} faults in {} files", faults.len(), tree.len());
    run::passed(&format!("{} files are tidy", tree.len()));
    Ok(())
}

fn check(tree: &[Source]) -> Vec<(String, Fault)> {
    let design = tree.iter().find(|source| source.path == "DESIGN.md").map_or("", |source| &source.text);
    let of_file = |source: &Source| -> Vec<(String, Fault)> {
        let alone = RULES.iter().flat_map(|rule| rule(source));
        alone.chain(manifests::reasons(source, design)).map(|fault| (source.path.clone(), fault)).collect()
    };
    tree.iter().flat_map(of_file).collect()
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
    fn every_rule_is_applied_to_every_file() {
        let source = Source::new("crates/semel/src/machine/mod.rs", "fn f() { SystemTime; }\n");
        let rules: Vec<_> = check(&[source]).into_iter().map(|(_, fault)| fault.rule).collect();
        assert_eq!(rules, ["opening", "module files"]);
    }

    #[test]
    fn the_design_gives_the_reasons() {
        let manifest = "[package]\n[dependencies]\nsha2 = \"1\"\n[lints]\nworkspace = true\n";
        let tree =
            |design: &str| [Source::new("crates/a/Cargo.toml", manifest), Source::new("DESIGN.md", design)];
        assert_eq!(check(&tree("")).len(), 1);
        assert_eq!(check(&tree("- `sha2`: ids\n")).len(), 0);
    }
}
