//! What files and tests are called.

use super::source::{Fault, Source, find_words, line_at};

/// Names that say nothing of what a file is for.
const EMPTY_NAMES: [&str; 12] = [
    "util", "utils", "helper", "helpers", "common", "manager", "handler", "handlers", "misc", "base",
    "shared", "types",
];
/// A test's name is a sentence that could be false; two words are not.
const TEST_WORDS_MIN: usize = 3;

/// No file or folder has a name that says nothing.
pub(super) fn files(source: &Source) -> Vec<Fault> {
    if !source.is_rust() {
        return Vec::new();
    }
    let names = source.path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    let empty = names.filter(|name| EMPTY_NAMES.contains(name));
    empty
        .map(|name| Fault::new("file names", 1, format!("`{name}` says nothing: name it after its job")))
        .collect()
}

/// Every test has a name of three words at least.
pub(super) fn tests(source: &Source) -> Vec<Fault> {
    let code = &source.code;
    let mut faults = Vec::new();
    for at in ["#[test]", "#[tokio::test"].iter().flat_map(|attribute| find_words(code, attribute)) {
        let after = code.get(at..).unwrap_or_default();
        let Some((before, named)) = after.split_once("fn ") else { continue };
        let name = named.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        // A macro names its tests where it is called.
        if named.starts_with('$') {
            continue;
        }
        if name.split('_').filter(|word| !word.is_empty()).count() < TEST_WORDS_MIN {
            let message = format!("`{name}` is no sentence that could be false: say what must hold");
            faults.push(Fault::new("test names", line_at(code, at + before.len()), message));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_name_says_nothing_is_found() {
        for path in ["src/utils.rs", "src/common/a.rs", "src/handler.rs"] {
            assert_eq!(files(&Source::new(path, "")).len(), 1, "{path}");
        }
        assert_eq!(files(&Source::new("src/claim.rs", "")).len(), 0);
    }

    #[test]
    fn a_test_whose_name_is_no_sentence_is_found() {
        let of = |attribute, name| Source::new("a.rs", format!("{attribute}\nasync fn {name}() {{}}\n"));
        assert_eq!(tests(&of("#[test]", "claims_work")).len(), 1);
        assert_eq!(tests(&of("#[tokio::test(start_paused = true)]", "works")).len(), 1);
        assert_eq!(tests(&of("#[test]", "a_claim_runs")).len(), 0);
        assert_eq!(tests(&of("#[test]", "claims_work"))[0].line, 2);
    }
}
