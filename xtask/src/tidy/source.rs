//! A file as the rules see it: its text, and its code without comments and literals.

use std::path::Path;

/// One text file of the tree.
#[derive(Debug)]
pub(super) struct Source {
    /// Relative to the root, with forward slashes.
    pub(super) path: String,
    /// What is in it.
    pub(super) text: String,
    /// Rust only: the text with comments and literals blanked, line for line.
    pub(super) code: String,
}

/// Something that a rule does not let through.
#[derive(Debug)]
pub(super) struct Fault {
    /// The rule's name.
    pub(super) rule: &'static str,
    /// Which of the rule's words it is about, or nothing: exceptions are made word by word.
    pub(super) about: &'static str,
    /// Counted from 1.
    pub(super) line: usize,
    /// What is wrong, and what to do instead.
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(rule: &'static str, line: usize, message: impl Into<String>) -> Self {
        Self { rule, about: "", line, message: message.into() }
    }

    pub(super) fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }
}

impl Source {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let mut source = Self { path, text, code: String::new() };
        if source.is_rust() {
            source.code = code_of(&source.text);
        }
        source
    }

    pub(super) fn is_rust(&self) -> bool {
        self.is_a("rs")
    }

    /// Whether the file's name ends like this.
    pub(super) fn is_a(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// The last part of the path.
    pub(super) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Which line the byte at `offset` is on, counted from 1.
pub(super) fn line_at(text: &str, offset: usize) -> usize {
    text.get(..offset).map_or(1, |before| before.matches('\n').count() + 1)
}

/// Where `word` stands alone, not as a part of a longer name.
pub(super) fn find_words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = text.get(..*at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        !(before.is_some_and(is_part) || word.ends_with(is_part) && after.is_some_and(is_part))
    })
}

/// Rust with comments and literals blanked: what is left can be searched and counted without being fooled.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(bytes) = hidden_bytes(rest) {
            let (hidden, after) = rest.split_at(bytes);
            code.extend(hidden.chars().map(|c| if c == '\n' { c } else { ' ' }));
            rest = after;
            continue;
        }
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (plain, after) = rest.split_at(word.max(first.len_utf8()));
        code.push_str(plain);
        rest = after;
    }
    code
}

/// How long the comment or literal is that the text starts with, if it does.
fn hidden_bytes(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(text.find("*/").map_or(text.len(), |at| at + 2));
    }
    if text.starts_with('\'') {
        return char_bytes(text);
    }
    let prefix = text.bytes().take_while(|byte| matches!(byte, b'b' | b'r' | b'c')).count();
    let (prefix, quoted) = text.split_at(prefix);
    if prefix.ends_with('r') {
        let fences = quoted.bytes().take_while(|byte| *byte == b'#').count();
        let (fence, body) = quoted.split_at(fences);
        let body = body.strip_prefix('"')?;
        let close = format!("\"{fence}");
        let length = body.find(&close).map_or(body.len(), |at| at + close.len());
        return Some(prefix.len() + fences + 1 + length);
    }
    let body = quoted.strip_prefix('"')?;
    Some(prefix.len() + 1 + until_quote(body, '"'))
}

/// A quote opens a character only if it is closed after one; otherwise it names a lifetime.
fn char_bytes(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\'')?;
    let first = body.chars().next()?;
    let is_char = first == '\\' || body.get(first.len_utf8()..).is_some_and(|after| after.starts_with('\''));
    is_char.then(|| 1 + until_quote(body, '\''))
}

/// How far it is past the next quote that is not escaped.
fn until_quote(body: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text = "a(\"{ \\\" }\", 'x', '\\'', b'{', r#\"{ \" }\"#) // {\n/* { */ b<'a>()";
        let code = code_of(text);
        assert!(!code.contains('{') && !code.contains('}'), "{code}");
        assert!(code.starts_with("a(") && code.ends_with("b<'a>()"), "{code}");
        assert_eq!(code.lines().count(), text.lines().count());
    }

    #[test]
    fn a_word_inside_a_name_is_not_found() {
        assert_eq!(find_words("rand brand rand_core rand::rng", "rand").collect::<Vec<_>>(), [0, 21]);
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!((line_at("a\nb", 0), line_at("a\nb", 2)), (1, 2));
    }
}
