//! What the manifests must say: the workspace's lints, a core without drivers, and a reason for each dependency.

use super::text::{Fault, Source};

/// What the core must never need: a store's driver, a protocol, a server.
const DRIVERS: [&str; 20] = [
    "async-nats",
    "axum",
    "deadpool",
    "fred",
    "http",
    "hyper",
    "lapin",
    "postgres",
    "rdkafka",
    "redb",
    "redis",
    "reqwest",
    "rocksdb",
    "rusqlite",
    "sqlx",
    "tokio-postgres",
    "tonic",
    "tower",
    "tower-http",
    "ureq",
];

/// The clients of stores and brokers, and the one crate that speaks to each.
const SPOKEN_TO_BY: [(&str, &str); 6] = [
    ("async-nats", "semel-nats"),
    ("lapin", "semel-rabbitmq"),
    ("rdkafka", "semel-kafka"),
    ("sqlx", "semel-postgres"),
    ("tokio-postgres", "semel-postgres"),
    ("tokio-postgres-rustls", "semel-postgres"),
];

/// No published crate depends on a driver that it does not speak to.
pub(super) fn drivers(source: &Source) -> Vec<Fault> {
    let Some(name) = source.path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml"))
    else {
        return Vec::new();
    };
    let owner = |driver: &str| SPOKEN_TO_BY.iter().find(|(spoken_to, _)| *spoken_to == driver);
    let foreign = dependencies(&source.text).into_iter().filter_map(|(line, driver)| {
        let (_, owner) = owner(&driver).filter(|(_, owner)| *owner != name)?;
        Some(Fault::new("drivers", line, format!("only `{owner}` speaks to `{driver}`: depend on that")))
    });
    foreign.collect()
}

/// Every crate keeps the workspace's lints.
pub(super) fn lints(source: &Source) -> Vec<Fault> {
    if !is_crate(source) || section(&source.text, "[lints]").any(|(_, line)| line == "workspace = true") {
        return Vec::new();
    }
    vec![Fault::new("lints", 1, "does not keep the workspace's lints: add `[lints] workspace = true`")]
}

/// The core has no driver, no sibling crate and no features.
pub(super) fn core(source: &Source) -> Vec<Fault> {
    if source.path != "crates/semel/Cargo.toml" {
        return Vec::new();
    }
    let is_foreign = |name: &str| DRIVERS.contains(&name) || name.starts_with("semel-");
    let foreign = dependencies(&source.text).into_iter().filter(|(_, name)| is_foreign(name));
    let mut faults: Vec<_> = foreign
        .map(|(line, name)| Fault::new("core", line, format!("the core must not know `{name}`")))
        .collect();
    if let Some((line, _)) = section(&source.text, "[features]").next() {
        faults.push(Fault::new("core", line, "the core has no features: split a crate off instead"));
    }
    faults
}

/// Every dependency of what is shipped has a line in the design that says why it, and not another.
pub(super) fn reasons(source: &Source, design: &str) -> Vec<Fault> {
    if !is_crate(source) || !source.path.starts_with("crates/") {
        return Vec::new();
    }
    let has_reason = |name: &str| design.lines().any(|line| line.starts_with(&format!("- `{name}`")));
    let unreasoned = dependencies(&source.text)
        .into_iter()
        .filter(|(_, name)| !name.starts_with("semel") && !has_reason(name));
    let fault = |(line, name): (usize, String)| {
        Fault::new(
            "reasons",
            line,
            format!("`{name}` has no line in DESIGN.md: write \"- `{name}`: why it\""),
        )
    };
    unreasoned.map(fault).collect()
}

fn is_crate(source: &Source) -> bool {
    source.file_name() == "Cargo.toml" && source.text.lines().any(|line| line == "[package]")
}

/// The names in `[dependencies]`, with their lines. Dev and build dependencies ship with nobody.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let entries = section(manifest, "[dependencies]").filter_map(|(line, text)| {
        let name =
            text.split(['=', '.', ' ']).next().filter(|name| !name.is_empty() && !name.starts_with('#'))?;
        Some((line, name.to_owned()))
    });
    let tables = manifest.lines().enumerate().filter_map(|(line, text)| {
        let name = text.strip_prefix("[dependencies.")?.strip_suffix(']')?;
        Some((line + 1, name.to_owned()))
    });
    entries.chain(tables).collect()
}

/// The lines under a heading, with their numbers.
fn section<'a>(manifest: &'a str, heading: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let lines = manifest.lines().enumerate().map(|(line, text)| (line + 1, text.trim()));
    lines.skip_while(move |(_, text)| *text != heading).skip(1).take_while(|(_, text)| !text.starts_with('['))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(rest: &str) -> Source {
        Source::new("crates/semel/Cargo.toml", format!("[package]\nname = \"semel\"\n\n{rest}"))
    }

    #[test]
    fn a_crate_without_the_lints_is_found() {
        assert_eq!(lints(&manifest("[dependencies]\nworkspace = true\n")).len(), 1);
        assert_eq!(lints(&manifest("[lints]\nworkspace = true\n")).len(), 0);
        assert_eq!(lints(&Source::new("Cargo.toml", "[workspace]\n")).len(), 0);
    }

    #[test]
    fn a_driver_or_a_feature_in_the_core_is_found() {
        let found =
            core(&manifest("[dependencies]\nsha2 = \"1\"\nredis.workspace = true\n\n[dependencies.sqlx]\n"));
        assert_eq!(found.iter().map(|fault| fault.line).collect::<Vec<_>>(), [6, 8]);
        assert_eq!(core(&manifest("[dependencies]\nsemel-file = \"1\"\n")).len(), 1);
        assert_eq!(core(&manifest("[features]\ndefault = []\n")).len(), 1);
        assert_eq!(
            core(&manifest("[dependencies]\nsha2 = \"1\"\n\n[dev-dependencies]\nredis = \"1\"\n")).len(),
            0
        );
    }

    #[test]
    fn a_driver_beside_the_crate_that_speaks_to_it_is_found() {
        let of =
            |name: &str, text: &str| drivers(&Source::new(format!("crates/{name}/Cargo.toml"), text)).len();
        let nats = "[dependencies]\nasync-nats.workspace = true\n";
        assert_eq!((of("semel-nats", nats), of("semel-stream", nats)), (0, 1));
        assert_eq!(of("semel-cli", "[dev-dependencies]\nasync-nats.workspace = true\n"), 0);
    }

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let source =
            manifest("[dependencies]\nsha2.workspace = true\nsemel-file = \"1\"\ntokio = { a = 1 }\n");
        assert_eq!(reasons(&source, "- `sha2`: ids").len(), 1);
        assert_eq!(reasons(&source, "- `sha2`: ids\n- `tokio`: time").len(), 0);
    }
}
