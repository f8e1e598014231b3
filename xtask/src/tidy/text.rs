//! What every file must look like: its first line, what a `mod.rs` holds, no left-overs, no paths of one machine.

/// One text file of the tree.
#[derive(Debug)]
pub(super) struct Source {
    /// Relative to the root, with forward slashes.
    pub(super) path: String,
    /// What is in it.
    pub(super) text: String,
}

/// Something that a rule does not let through.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) rule: &'static str,
    /// Counted from 1.
    pub(super) line: usize,
    /// What is wrong, and what to do instead.
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(rule: &'static str, line: usize, message: impl Into<String>) -> Self {
        Self { rule, line, message: message.into() }
    }
}

impl Source {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// The last part of the path.
    pub(super) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The lines, counted from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// What is left over from work in progress. Put together here, so that this file does not hold them.
const LEFT_OVERS: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!"),
];

/// Where somebody's machine shows through.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Use", "rs/")];

/// How a line of a `mod.rs` may start, beside `mod` and `use`: comments, attributes, and more of the line before.
const MODULE_LINES: [&str; 5] = ["//", "#", ")", "}", " "];

/// Every Rust file says in its first line what it is for.
pub(super) fn opening(source: &Source) -> Vec<Fault> {
    if source.path.rsplit_once('.').is_none_or(|(_, kind)| kind != "rs") || source.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![Fault::new("opening", 1, "opens without a `//!` line that says what the file is for")]
}

/// A `mod.rs` documents, declares and re-exports; it does no work.
pub(super) fn module_files(source: &Source) -> Vec<Fault> {
    if source.file_name() != "mod.rs" {
        return Vec::new();
    }
    let is_fine = |line: &str| {
        let bare = line.strip_prefix("pub").map_or(line, |rest| {
            rest.strip_prefix('(')
                .and_then(|rest| rest.split_once(')'))
                .map_or(rest, |(_, rest)| rest)
                .trim_start()
        });
        let is_declaration = bare.starts_with("mod ") && bare.ends_with(';');
        let is_more = line.is_empty() || MODULE_LINES.iter().any(|start| line.starts_with(start));
        is_more || is_declaration || bare.starts_with("use ")
    };
    let work = source.lines().find(|(_, line)| !is_fine(line));
    let message = "a mod.rs documents, declares and re-exports: move this to a file of its own";
    work.map(|(line, _)| Fault::new("module files", line, message)).into_iter().collect()
}

/// No file holds what was to be done before it was committed.
pub(super) fn left_overs(source: &Source) -> Vec<Fault> {
    found(source, "left-overs", &LEFT_OVERS, |word| {
        format!("`{word}` is left over: do it, or write an issue")
    })
}

/// No file says on whose machine it was written.
pub(super) fn machine_paths(source: &Source) -> Vec<Fault> {
    found(source, "machine paths", &MACHINE_PATHS, |path| {
        format!("`{path}` is a path of one machine: make it relative")
    })
}

/// The machine decides from values alone: it waits for nothing, and knows neither engine nor store. That it asks no clock, disk
/// or dice is clippy's to say (`crates/semel/clippy.toml`).
pub(super) fn machine_imports(source: &Source) -> Vec<Fault> {
    if !source.path.starts_with("crates/semel/src/machine/") {
        return Vec::new();
    }
    found(source, "machine", &["async", "crate::engine", "crate::store"], |word| {
        format!("`{word}` in the machine, which decides from values alone: let the engine do it")
    })
}

/// Where one of these stands alone, not as a part of a longer name.
fn found(
    source: &Source,
    rule: &'static str,
    wanted: &[&str],
    message: impl Fn(&str) -> String,
) -> Vec<Fault> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let stands_alone = |line: &str, at: usize, word: &str| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
        !(word.starts_with(is_part) && before.is_some_and(is_part)
            || word.ends_with(is_part) && after.is_some_and(is_part))
    };
    let mut faults = Vec::new();
    for (number, line) in source.lines() {
        for word in wanted {
            let places = line.match_indices(word).filter(|(at, _)| stands_alone(line, *at, word));
            faults.extend(places.map(|_| Fault::new(rule, number, message(word))));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_or_knows_the_engine_is_found_in_the_machine_alone() {
        let text = "//! A.\nuse crate::engine::Semel;\nasync fn f() {}\n";
        assert_eq!(machine_imports(&Source::new("crates/semel/src/machine/a.rs", text)).len(), 2);
        assert_eq!(machine_imports(&Source::new("crates/semel/src/engine/a.rs", text)).len(), 0);
    }

    #[test]
    fn a_file_without_its_first_line_is_found() {
        assert_eq!(opening(&Source::new("a.rs", "use a;\n")).len(), 1);
        assert_eq!(opening(&Source::new("a.rs", "//!\nuse a;\n")).len(), 1);
        assert_eq!(opening(&Source::new("a.rs", "//! What a is for.\n")).len(), 0);
        assert_eq!(opening(&Source::new("a.md", "# A\n")).len(), 0);
    }

    #[test]
    fn a_mod_file_that_does_work_is_found() {
        let good = "//! A.\n\n#![expect(x, reason = \"y\")]\n#[cfg(test)]\nmod a;\npub(crate) mod b;\n\npub use a::{B, C};\n";
        assert_eq!(module_files(&Source::new("a/mod.rs", good)).len(), 0);
        for work in
            ["pub fn f() {}\n", "pub(crate) fn f() {}\n", "mod c {\n}\n", "const A: u8 = 1;\n", "impl A {}\n"]
        {
            let found = module_files(&Source::new("a/mod.rs", format!("{good}{work}")));
            assert_eq!(found.len(), 1, "{work}");
            assert_eq!(found[0].line, 9, "{work}");
        }
        assert_eq!(module_files(&Source::new("a/lib.rs", "fn f() {}")).len(), 0);
    }

    #[test]
    fn every_left_over_is_found() {
        for word in LEFT_OVERS {
            let found = left_overs(&Source::new("a.rs", format!("fine\n// {word} later")));
            assert_eq!((found.len(), found[0].line), (1, 2), "{word}");
        }
        let template = format!("mktemp -d a.{}", "X".repeat(6));
        assert_eq!(left_overs(&Source::new("a.sh", &template)).len(), 0);
    }

    #[test]
    fn every_machine_path_is_found() {
        for path in MACHINE_PATHS {
            assert_eq!(machine_paths(&Source::new("a.md", format!("see {path}me/a"))).len(), 1, "{path}");
        }
        assert_eq!(machine_paths(&Source::new("a.md", "see docs/stores.md")).len(), 0);
    }
}
