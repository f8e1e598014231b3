//! The packages of the workspace: which of them a change touches, and whether they can be published.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use xtask::run::{cargo, program, root, started};

/// A package of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Package {
    name: String,
    folder: PathBuf,
    dependencies: Vec<String>,
    is_published: bool,
}

/// Packs every package that is published, as it would be uploaded: a manifest that cannot be is found here.
/// `cargo publish --workspace --dry-run` also builds what was packed, and takes minutes.
pub(crate) fn package() -> Result<()> {
    started("packages");
    let unpublished = all()?.into_iter().filter(|package| !package.is_published);
    let excluded = unpublished.flat_map(|package| ["--exclude".to_owned(), package.name]);
    // Offline: what is needed was downloaded by the build, and asking anew takes half a minute.
    let words = ["package", "--quiet", "--offline", "--workspace", "--no-verify", "--allow-dirty"];
    cargo(words.map(str::to_owned).into_iter().chain(excluded)).show()
}

fn all() -> Result<Vec<Package>> {
    let metadata = cargo(["metadata", "--no-deps", "--format-version", "1"]).output()?;
    Ok(packages(&serde_json::from_str(&metadata).context("cargo's metadata")?))
}

/// The names of all packages that differ from `main`, committed or not, and of all that depend on one of them.
pub(crate) fn changed() -> Result<Vec<String>> {
    let packages = all()?;
    let base = program("git", ["merge-base", "HEAD", "main"]);
    let base = base.output().unwrap_or_else(|_| "HEAD".to_owned());
    let tracked = program("git", ["diff", "--name-only", base.trim()]).output()?;
    let new = program("git", ["ls-files", "--others", "--exclude-standard"]).output()?;
    let files = tracked.lines().chain(new.lines()).map(|file| root().join(file)).collect::<Vec<_>>();
    Ok(with_dependents(&packages, touched(&packages, &files)).into_iter().collect())
}

fn packages(metadata: &Value) -> Vec<Package> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let list =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let package = |value: &Value| {
        let folder = Path::new(&text(value, "manifest_path")?).parent()?.to_path_buf();
        let dependencies = list(value, "dependencies").iter().filter_map(|one| text(one, "name")).collect();
        // `publish = false` is an empty list of registries.
        let is_published = value.get("publish").is_none_or(Value::is_null);
        Some(Package { name: text(value, "name")?, folder, dependencies, is_published })
    };
    list(metadata, "packages").iter().filter_map(package).collect()
}

/// Those that have one of the files; a file belongs to the package in the deepest folder above it. What belongs to none,
/// such as a manifest of the workspace, touches all; documents touch none.
fn touched(packages: &[Package], files: &[PathBuf]) -> BTreeSet<String> {
    let mut touched = BTreeSet::new();
    for file in files {
        let owners = packages.iter().filter(|package| file.starts_with(&package.folder));
        match owners.max_by_key(|package| package.folder.components().count()) {
            Some(package) => drop(touched.insert(package.name.clone())),
            None if file.extension().is_some_and(|extension| extension == "toml" || extension == "lock") => {
                touched.extend(packages.iter().map(|package| package.name.clone()));
            }
            None => {}
        }
    }
    touched
}

fn with_dependents(packages: &[Package], mut names: BTreeSet<String>) -> BTreeSet<String> {
    loop {
        let depends = |package: &&Package| package.dependencies.iter().any(|name| names.contains(name));
        let more: BTreeSet<_> = packages.iter().filter(depends).map(|package| package.name.clone()).collect();
        if more.is_subset(&names) {
            return names;
        }
        names.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Vec<Package> {
        let package = |name: &str, folder: &str, dependencies: &[&str]| Package {
            name: name.to_owned(),
            folder: PathBuf::from(folder),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
            is_published: true,
        };
        vec![
            package("core", "/w/crates/core", &[]),
            package("file", "/w/crates/file", &["core"]),
            package("cli", "/w/crates/cli", &["file"]),
            package("xtask", "/w/xtask", &[]),
            package("proofs", "/w/xtask/proofs", &["xtask"]),
        ]
    }

    fn found(file: &str) -> Vec<String> {
        let packages = workspace();
        with_dependents(&packages, touched(&packages, &[PathBuf::from(file)])).into_iter().collect()
    }

    #[test]
    fn a_package_is_touched_with_all_that_depend_on_it() {
        assert_eq!(found("/w/crates/file/src/a.rs"), ["cli", "file"]);
        assert_eq!(found("/w/crates/core/src/a.rs"), ["cli", "core", "file"]);
        assert_eq!(found("/w/xtask/proofs/src/a.rs"), ["proofs"]);
        assert_eq!(found("/w/xtask/src/a.rs"), ["proofs", "xtask"]);
    }

    #[test]
    fn what_belongs_to_no_package_touches_all_or_none() {
        assert_eq!(found("/w/Cargo.lock").len(), workspace().len());
        assert_eq!(found("/w/README.md").len(), 0);
    }

    #[test]
    fn cargo_says_which_packages_there_are() {
        let metadata = serde_json::json!({ "packages": [{
            "name": "file", "manifest_path": "/w/crates/file/Cargo.toml", "dependencies": [{ "name": "core" }]
        }] });
        assert_eq!(packages(&metadata), [workspace().remove(1)]);
    }
}
