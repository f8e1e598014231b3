//! Each client's own tests, against the running server.

use super::programs::{Python, TypeScript};
use super::serving::serve_scope;
use crate::binary::ran;
use crate::place::Place;

/// Where the tests have their keys.
const SCOPE: &str = "tests";
/// Fewer tests than this have not been found.
const TESTS_LEAST: usize = 25;

#[test]
fn the_python_client_does_what_it_says_before_the_running_server() {
    let place = Place::file();
    let ((server, token), python) = (serve_scope(&place, SCOPE), Python::new());
    ran(python.command().args(["-m", "compileall", "-q", "."])).fine();
    let words = "-W error -m unittest discover --start-directory tests --top-level-directory .";
    let tests = ran(python
        .command()
        .args(words.split(' '))
        .env("SEMEL_URL", server.url(""))
        .env("SEMEL_TOKEN", token));
    assert_eq!(tests.code, Some(0), "{}", tests.err);
    assert!(count(&tests.err, "Ran ") >= TESTS_LEAST, "{}", tests.err);
}

#[test]
fn the_typescript_client_does_what_it_says_before_the_running_server() {
    let place = Place::file();
    let ((server, token), typescript) = (serve_scope(&place, SCOPE), TypeScript::compile());
    let mut node = typescript.command();
    node.arg("--test").args(typescript.tests()).env("SEMEL_URL", server.url("")).env("SEMEL_TOKEN", token);
    let tests = node.output().expect("node starts");
    let (out, err) = (String::from_utf8_lossy(&tests.stdout), String::from_utf8_lossy(&tests.stderr));
    assert!(tests.status.success(), "{out}\n{err}");
    assert!(count(&out, " pass ") >= TESTS_LEAST, "{out}");
}

/// The number after these words.
fn count(text: &str, words: &str) -> usize {
    let after = text.rsplit_once(words).map(|(_, after)| after).unwrap_or_default();
    after.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
