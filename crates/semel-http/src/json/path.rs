//! Which part of a JSON body is meant: `$.client_time`.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use super::text;

/// Which part of a JSON body is meant.
///
/// `$.a.b` and `$['a b']` name members, `$.list[0]` an element, `$.items[*].at` that member of every element.
///
/// ```
/// use semel_http::json::JsonPath;
///
/// let path: JsonPath = "$.items[*]['sent at']".parse()?;
/// assert_eq!(path.to_string(), "$.items[*]['sent at']");
/// assert!("client_time".parse::<JsonPath>().is_err());
/// # Ok::<(), semel_http::json::MalformedPath>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    steps: Box<[Step]>,
}

/// One step, from a container to some of its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// By the inside of the name's canonical form, since that is what names are compared in.
    Member(Box<[u8]>),
    Element(usize),
    Every,
}

/// A child of a container.
pub(super) enum Child<'a> {
    /// By the inside of its name's canonical form.
    Member(&'a [u8]),
    Element(usize),
}

impl JsonPath {
    /// The step that leads on from a container at `level`, and what comes after it.
    pub(super) fn steps_from(&self, level: usize) -> Option<(&Step, &[Step])> {
        self.steps.get(level..)?.split_first()
    }
}

impl Step {
    fn member(name: &str) -> Self {
        let mut canonical = Vec::new();
        name.chars().for_each(|character| text::push(character, &mut canonical));
        Self::Member(canonical.into())
    }

    pub(super) fn leads_to(&self, child: &Child<'_>) -> bool {
        match (self, child) {
            (Self::Every, _) => true,
            (Self::Member(step), Child::Member(name)) => **step == **name,
            (Self::Element(step), Child::Element(index)) => step == index,
            (Self::Member(_), Child::Element(_)) | (Self::Element(_), Child::Member(_)) => false,
        }
    }
}

/// A path that cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedPath {
    path: Box<str>,
    why: &'static str,
}

impl fmt::Display for MalformedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no path into JSON: {}", self.path, self.why)
    }
}

impl Error for MalformedPath {}

impl FromStr for JsonPath {
    type Err = MalformedPath;

    fn from_str(path: &str) -> Result<Self, MalformedPath> {
        steps(path).map_err(|why| MalformedPath { path: path.into(), why })
    }
}

fn steps(path: &str) -> Result<JsonPath, &'static str> {
    let mut rest = path.strip_prefix('$').ok_or("it begins with `$`, as in `$.client_time`")?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = match rest.strip_prefix('[') {
            Some(inside) => in_brackets(inside)?,
            None => after_point(
                rest.strip_prefix('.').ok_or("after `$`, write `.name`, `['name']`, `[0]` or `[*]`")?,
            )?,
        };
        steps.push(step);
        rest = after;
    }
    if steps.is_empty() {
        return Err("it names the whole body, and then nothing would be left to compare; name a member");
    }
    Ok(JsonPath { steps: steps.into() })
}

fn after_point(rest: &str) -> Result<(Step, &str), &'static str> {
    if let Some(after) = rest.strip_prefix('*') {
        return Ok((Step::Every, after));
    }
    let length = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
    match rest.split_at_checked(length) {
        Some((name, after)) if !name.is_empty() => Ok((Step::member(name), after)),
        _ if rest.starts_with('.') => Err("`..` is not known here; name each place"),
        _ => Err("a name is missing after `.`; write one with other characters as `['name']`"),
    }
}

/// Whether a character may be in a name that has no quotes.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '$' | '@')
}

fn in_brackets(rest: &str) -> Result<(Step, &str), &'static str> {
    let (step, after) = match rest.chars().next() {
        Some('*') => (Step::Every, rest.get(1..).unwrap_or_default()),
        Some(quote @ ('\'' | '"')) => quoted(rest.get(1..).unwrap_or_default(), quote)?,
        Some('0'..='9') => {
            let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at_checked(length).unwrap_or_default();
            (Step::Element(digits.parse().map_err(|_| "an index is too large")?), after)
        }
        Some('-') => return Err("an index counts from the start, so it is not negative"),
        _ => return Err("in brackets, write an index, `*`, or a name in quotes: `[0]`, `[*]`, `['name']`"),
    };
    Ok((step, after.strip_prefix(']').ok_or("a bracket is not closed with `]`")?))
}

fn quoted(rest: &str, quote: char) -> Result<(Step, &str), &'static str> {
    let mut name = String::new();
    let mut characters = rest.chars();
    loop {
        match characters.next().ok_or("a quoted name has no closing quote")? {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | '\'' | '"')) => name.push(escaped),
                _ => {
                    return Err(
                        "in quotes, a backslash comes before a quote or a backslash only; write others as they are",
                    );
                }
            },
            end if end == quote => return Ok((Step::member(&name), characters.as_str())),
            plain => name.push(plain),
        }
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        self.steps.iter().try_for_each(|step| step.fmt(f))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let canonical = match self {
            Self::Every => return f.write_str("[*]"),
            Self::Element(index) => return write!(f, "[{index}]"),
            Self::Member(canonical) => str::from_utf8(canonical).unwrap_or_default(),
        };
        let name: String = text::characters(canonical).collect();
        if !name.is_empty() && name.chars().all(is_plain) {
            return write!(f, ".{name}");
        }
        write!(f, "['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_prints_as_it_is_read_again() {
        for (path, printed) in [
            ("$.a.b", "$.a.b"),
            ("$['a b']", "$['a b']"),
            ("$[\"a\"]", "$.a"),
            ("$[*]", "$[*]"),
            ("$.*", "$[*]"),
            ("$.items[*].at", "$.items[*].at"),
            ("$.list[0]", "$.list[0]"),
            ("$['it\\'s \\\\ \"so\"']", "$['it\\'s \\\\ \"so\"']"),
            ("$['']", "$['']"),
            ("$.größe", "$.größe"),
            ("$['a\nb']", "$['a\nb']"),
            ("$.client-time", "$.client-time"),
        ] {
            let read: JsonPath = path.parse().unwrap();
            assert_eq!(read.to_string(), printed, "{path}");
            assert_eq!(printed.parse::<JsonPath>().unwrap(), read, "{path}");
        }
    }

    #[test]
    fn a_path_that_cannot_be_read_says_why() {
        for (path, why) in [
            ("", "begins with `$`"),
            ("id", "begins with `$`"),
            ("$", "whole body"),
            ("$id", "after `$`"),
            ("$.", "name is missing"),
            ("$..id", "`..`"),
            ("$.a b", "write `.name`"),
            ("$[", "in brackets"),
            ("$[id]", "in brackets"),
            ("$[-1]", "not negative"),
            ("$[0", "not closed"),
            ("$[0 ]", "not closed"),
            ("$['a]", "closing quote"),
            ("$['a'", "not closed"),
            ("$['\\n']", "backslash"),
            ("$[99999999999999999999999]", "too large"),
        ] {
            let refused = path.parse::<JsonPath>().unwrap_err().to_string();
            assert!(refused.contains(why), "{path}: {refused}");
        }
    }
}
