//! `[[token]]`: who may ask a server, read from a file of its own.

use std::sync::Arc;

use semel_config::value::{Words, any_text, count, list, text, word};
use semel_config::{Errors, Source, Table};

use crate::access::{Caller, Known, Quota, Role, TokenDigest, Tokens};

const ROLE: &Words<Role> = &[("work", Role::Work), ("read", Role::Read), ("operate", Role::Operate)];
/// More than one process can be asked in a second.
const ASKS_MAX: u64 = 10_000_000;
/// More tokens than one server should know: all are looked at for each request.
const TOKENS_MAX: usize = 10_000;
/// More characters than a name needs.
const NAME_CHARS_MAX: usize = 64;

/// The tokens in this text; none at all is a mistake, which would let everybody in.
pub fn tokens(text: &str, name: &str) -> Result<Tokens, Errors> {
    Source::parse(text, name)?.judged(|mut root| {
        let errors = root.errors();
        let written = root.tables("token");
        if written.is_empty() {
            errors.missing(
                "holds no token; `semel token new` makes one, and prints the [[token]] to write here",
            );
        } else if written.len() > TOKENS_MAX {
            errors.missing(format!("holds {} tokens; {TOKENS_MAX} at most", written.len()));
        }
        // Each is read before any is given up, so that everything that is wrong is reported.
        let known: Vec<_> = written.into_iter().map(token).collect();
        root.finish();
        let known: Option<Vec<_>> = known.into_iter().collect();
        Tokens::new(known?).map_err(|error| errors.missing(error.to_string())).ok()
    })
}

fn token(mut table: Table<'_>) -> Option<Known> {
    for (name, hint) in [
        ("name", "whose token is it? Write name = \"billing-worker\""),
        ("digest", "`semel token digest` prints it"),
        ("role", "write \"work\", \"read\" or \"operate\""),
    ] {
        if !table.has(name) {
            table.wrong(name, &format!("is missing: {hint}"));
        }
    }
    let name = table.read("name", text(named));
    let digest = table.read("digest", text(str::parse::<TokenDigest>));
    let role = table.read("role", word(ROLE));
    let scope = scope(&mut table);
    let quota = quota(&mut table);
    table.finish();
    let caller = Caller::new(name?, role?, scope?, quota?);
    Some(Known { digest: digest?, caller: Arc::new(caller) })
}

/// A name that can stand in a log.
fn named(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.trim() != text {
        return Err(format!("\"{text}\"; write a name without spaces around it"));
    }
    if text.chars().count() > NAME_CHARS_MAX || text.chars().any(char::is_control) {
        return Err(format!("no name; write {NAME_CHARS_MAX} characters at most, all of them visible"));
    }
    Ok(text.to_owned())
}

/// A scope that a key can have; the parts are compared as keys have them, without spaces around.
fn scope(table: &mut Table<'_>) -> Option<Vec<Box<str>>> {
    if !table.has("scope") {
        table.value("scope");
        return Some(Vec::new());
    }
    let parts = table.read("scope", list(any_text))?;
    if parts.is_empty() {
        table.wrong("scope", "is empty; leave it out for a token that is good everywhere");
        return None;
    }
    match semel::Key::scoped(parts, "o", "n") {
        Ok(key) => Some(key.scope().map(Into::into).collect()),
        Err(error) => {
            table.wrong("scope", &format!("cannot be: {error}"));
            None
        }
    }
}

fn quota(table: &mut Table<'_>) -> Option<Quota> {
    let (has_rate, has_burst) = (table.has("asks_per_second"), table.has("asks_burst"));
    let rate = table.read("asks_per_second", count::<u32>(1..=ASKS_MAX));
    let burst = table.read("asks_burst", count::<u32>(1..=ASKS_MAX));
    match (rate, burst) {
        (Some(rate), burst) if burst.is_some() || !has_burst => {
            Some(Quota::per_second(rate, burst.unwrap_or(rate)))
        }
        (None, Some(_)) if !has_rate => {
            table.wrong("asks_burst", "does nothing without asks_per_second");
            None
        }
        (None, None) if !has_rate && !has_burst => Some(Quota::none()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Need;

    const DIGEST: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    fn wrong(text: &str) -> String {
        tokens(text, "t.toml").expect_err(text).to_string()
    }

    #[test]
    fn a_file_of_tokens_means_what_it_says() {
        let text = format!(
            "[[token]]\nname = 'ann'\ndigest = '{DIGEST}'\nrole = 'operate'\nscope = [' acme', 'eu']\nasks_per_second = 1\n"
        );
        let tokens = tokens(&text, "t.toml").expect("is fine");
        let ann = tokens.caller("test").expect("is known");
        assert_eq!((ann.name(), ann.scope()), ("ann", &["acme".into(), "eu".into()][..]));
        assert!(ann.may(Need::Act) && !ann.may(Need::Claim));
        assert!(ann.admit(1).is_ok() && ann.admit(1).is_err(), "the burst is what comes in a second");
    }

    #[test]
    fn everything_that_is_wrong_is_told_by_line_with_what_was_meant() {
        let said = wrong(
            "[[token]]\nnmae = 'a'\ndigest = 'semel_s3cret'\nrole = 'operator'\n\n[[token]]\nname = 'b'\nrole = 'read'\nscope = []\nasks_burst = 3\n",
        );
        for line in [
            "t.toml:1:1: `name` is missing",
            "t.toml:2:1: `nmae` is no setting here; did you mean `name`?",
            "t.toml:3:10: `digest` is a token itself",
            "t.toml:4:8: `role` is \"operator\"; write \"work\" or \"read\" or \"operate\"; did you mean `operate`?",
            "t.toml:6:1: `digest` is missing",
            "t.toml:9:9: `scope` is empty",
            "t.toml:10:14: `asks_burst` does nothing",
        ] {
            assert!(said.contains(line), "{line}: {said}");
        }
        assert!(!said.contains("s3cret"), "{said}");
    }

    #[test]
    fn no_token_two_of_one_name_and_what_is_no_toml_are_refused() {
        assert!(wrong("").contains("holds no token"));
        assert!(wrong("token = 3").contains("write `[[token]]` for each"));
        assert!(wrong("[[token]").contains("is not TOML"));
        let one = format!("[[token]]\nname = 'a'\nrole = 'read'\ndigest = '{DIGEST}'\n");
        assert!(wrong(&format!("{one}{one}")).contains("two tokens named \"a\""));
        let other = one.replace("'a'", "'b'");
        assert!(wrong(&format!("{one}{other}")).contains("are one token"));
    }
}
