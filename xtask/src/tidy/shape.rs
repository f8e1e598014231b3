//! How a file is built: its first line, its length, its functions, and what a `mod.rs` holds.

use super::source::{Fault, Source, find_words, line_at};

/// Longer files are two files.
const FILE_LINES_MAX: usize = 400;
/// Longer functions are two functions.
const FUNCTION_LINES_MAX: usize = 70;

/// Every Rust file says in its first line what it is for.
pub(super) fn opening(source: &Source) -> Vec<Fault> {
    if !source.is_rust() || source.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![Fault::new("opening", 1, "opens without a `//!` line that says what the file is for")]
}

/// No Rust file is longer than two screens of tests and code can be.
pub(super) fn length(source: &Source) -> Vec<Fault> {
    let lines = source.text.lines().count();
    if !source.is_rust() || lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    vec![Fault::new("length", lines, format!("has {lines} lines, {FILE_LINES_MAX} at most: split it"))]
}

/// No function is longer than a screen.
pub(super) fn functions(source: &Source) -> Vec<Fault> {
    let code = &source.code;
    let mut faults = Vec::new();
    for at in find_words(code, "fn") {
        let Some((name, end)) = function_at(code, at) else { continue };
        let first = line_at(code, at);
        let lines = line_at(code, end) - first + 1;
        if lines > FUNCTION_LINES_MAX {
            let message = format!("`{name}` has {lines} lines, {FUNCTION_LINES_MAX} at most: split it");
            faults.push(Fault::new("functions", first, message));
        }
    }
    faults
}

/// The name of the function whose `fn` is at `at`, and where its body ends. Function types and methods
/// without a body have none.
fn function_at(code: &str, at: usize) -> Option<(&str, usize)> {
    let after = code.get(at + 2..)?;
    let name = after.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    if name.is_empty() {
        return None;
    }
    let (mut nested, mut braces) = (0_i32, 0_i32);
    for (offset, c) in after.char_indices() {
        match c {
            '(' | '[' => nested += 1,
            ')' | ']' => nested -= 1,
            ';' if nested == 0 && braces == 0 => return None,
            '{' => braces += 1,
            '}' if braces == 1 => return Some((name, at + 2 + offset)),
            '}' => braces -= 1,
            _ => {}
        }
    }
    None
}

/// A `mod.rs` documents, declares and re-exports; it does no work.
pub(super) fn module_files(source: &Source) -> Vec<Fault> {
    if source.file_name() != "mod.rs" {
        return Vec::new();
    }
    let mut offset = 0;
    for statement in source.code.split_inclusive(';') {
        let bare = without_visibility(without_attributes(statement.trim()));
        if !(bare.is_empty() || bare.starts_with("use ") || is_declaration(bare)) {
            let start = offset + statement.len() - statement.trim_start().len();
            let message = "a mod.rs documents, declares and re-exports: move this to a file of its own";
            return vec![Fault::new("module files", line_at(&source.code, start), message)];
        }
        offset += statement.len();
    }
    Vec::new()
}

fn is_declaration(statement: &str) -> bool {
    statement.starts_with("mod ") && statement.ends_with(';') && !statement.contains('{')
}

fn without_attributes(statement: &str) -> &str {
    let Some(attribute) = statement.strip_prefix("#![").or_else(|| statement.strip_prefix("#[")) else {
        return statement;
    };
    let mut depth = 1_i32;
    for (at, c) in attribute.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return without_attributes(attribute.get(at + 1..).unwrap_or_default().trim_start());
        }
    }
    statement
}

fn without_visibility(statement: &str) -> &str {
    let Some(rest) = statement.strip_prefix("pub") else { return statement };
    let rest = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, rest)) => rest,
        None => rest,
    };
    rest.trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_its_first_line_is_found() {
        assert_eq!(opening(&Source::new("a.rs", "use a;\n")).len(), 1);
        assert_eq!(opening(&Source::new("a.rs", "//!\nuse a;\n")).len(), 1);
        assert_eq!(opening(&Source::new("a.rs", "//! What a is for.\n")).len(), 0);
        assert_eq!(opening(&Source::new("a.md", "# A\n")).len(), 0);
    }

    #[test]
    fn a_file_over_the_limit_is_found() {
        assert_eq!(length(&Source::new("a.rs", "x\n".repeat(FILE_LINES_MAX + 1))).len(), 1);
        assert_eq!(length(&Source::new("a.rs", "x\n".repeat(FILE_LINES_MAX))).len(), 0);
    }

    #[test]
    fn a_function_over_the_limit_is_found_by_its_name() {
        let body = |lines| {
            format!(
                "trait T {{ fn short(&self); }}\nfn long<const N: usize>(a: [u8; 2]) {{\n{}}}",
                "\"}\";\n".repeat(lines)
            )
        };
        let found = functions(&Source::new("a.rs", body(FUNCTION_LINES_MAX - 1)));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].line, 2);
        assert!(found[0].message.starts_with("`long` has 71 lines"), "{found:?}");
        assert_eq!(functions(&Source::new("a.rs", body(FUNCTION_LINES_MAX - 2))).len(), 0);
    }

    #[test]
    fn a_mod_file_that_does_work_is_found() {
        let good = "//! A.\n\n#![expect(x, reason = \"y\")]\n#[cfg(test)]\nmod a;\npub(crate) mod b;\n\npub use a::{B, C};\n";
        assert_eq!(module_files(&Source::new("a/mod.rs", good)).len(), 0);
        for work in ["pub fn f() {}\n", "mod c { }\n", "const A: u8 = 1;\n", "impl A {}\n"] {
            let found = module_files(&Source::new("a/mod.rs", format!("{good}{work}")));
            assert_eq!(found.len(), 1, "{work}");
            assert_eq!(found[0].line, 9, "{work}");
        }
        assert_eq!(module_files(&Source::new("a/lib.rs", "fn f() {}")).len(), 0);
    }
}
