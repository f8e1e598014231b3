//! Which words a file may use: no left-overs, no machine's own paths, and one word a concept.

use super::source::{Fault, Source, find_words, line_at};

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

/// Words that the contract has another word for. Only those that hardly ever mean something else.
const VOCABULARY: [(&str, &str); 16] = [
    ("cache hit", "replay"),
    ("cache miss", "run"),
    ("ttl", "lease or retention"),
    ("time to live", "lease or retention"),
    ("expiry", "retention"),
    ("garbage collect", "sweep"),
    ("garbage collection", "sweep"),
    ("gc", "sweep"),
    ("purge", "sweep"),
    ("evict", "sweep"),
    ("backend", "store"),
    ("etag", "version"),
    ("checksum", "fingerprint"),
    ("conflict", "mismatch"),
    ("unlock", "release"),
    ("retry count", "attempt"),
];

/// No file holds what was to be done before it was committed.
pub(super) fn left_overs(source: &Source) -> Vec<Fault> {
    let found =
        LEFT_OVERS.into_iter().flat_map(|word| find_words(&source.text, word).map(move |at| (word, at)));
    let fault = |(word, at)| {
        let message = format!("`{word}` is left over: do it, or write an issue");
        Fault::new("left-overs", line_at(&source.text, at), message).about(word)
    };
    found.map(fault).collect()
}

/// No file says on whose machine it was written.
pub(super) fn machine_paths(source: &Source) -> Vec<Fault> {
    let found = MACHINE_PATHS
        .into_iter()
        .flat_map(|path| source.text.match_indices(path).map(move |(at, _)| (path, at)));
    let fault = |(path, at)| {
        let message = format!("`{path}` is a path of one machine: make it relative");
        Fault::new("machine paths", line_at(&source.text, at), message).about(path)
    };
    found.map(fault).collect()
}

/// Code and documentation of the crates use the contract's words.
pub(super) fn vocabulary(source: &Source) -> Vec<Fault> {
    let is_read = ["rs", "md", "sql", "lua", "toml"].iter().any(|kind| source.is_a(kind));
    if !is_read || !source.path.starts_with("crates/") {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for (line, text) in source.text.lines().enumerate() {
        let words = words_of(text);
        for (word, instead) in VOCABULARY {
            if holds(&words, word) {
                let message = format!("says `{word}`, and the word for that is {instead}");
                faults.push(Fault::new("vocabulary", line + 1, message).about(word));
            }
        }
    }
    faults
}

/// Whether the phrase is among the words, in the singular or the plural.
fn holds(words: &[String], phrase: &str) -> bool {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    let is = |word: &String, wanted: &str| word == wanted || word.strip_suffix('s') == Some(wanted);
    words.windows(phrase.len()).any(|here| here.iter().zip(&phrase).all(|(word, wanted)| is(word, wanted)))
}

/// The words of a line in lower case; `CacheHit`, `cache_hit` and `cache-hit` are two each.
fn words_of(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut words = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| chars.get(before));
        let after = chars.get(at + 1);
        let hump = c.is_uppercase()
            && (before.is_some_and(|c| c.is_lowercase()) || after.is_some_and(|c| c.is_lowercase()));
        if hump || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn every_word_that_has_a_better_one_is_found() {
        for (word, _) in VOCABULARY {
            let found = vocabulary(&Source::new("crates/a/src/a.rs", format!("/// A {word}, said so.")));
            assert!(found.iter().any(|fault| fault.about == word), "{word}");
        }
    }

    #[test]
    fn a_word_is_found_in_names_and_not_inside_words() {
        let of = |text| vocabulary(&Source::new("crates/a/src/a.rs", text)).len();
        assert_eq!(
            (of("let key_ttl_ms = 1;"), of("struct CacheHits;"), of("const KEY_TTL: u8"), of("TTLMap")),
            (1, 1, 1, 1)
        );
        assert_eq!((of("settled_at"), of("the cache; hitherto"), of("targets")), (0, 0, 0));
        assert_eq!(vocabulary(&Source::new("docs/a.md", "a ttl")).len(), 0);
    }
}
