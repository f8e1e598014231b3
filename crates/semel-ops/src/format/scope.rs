//! The parts of a scope as one text: `acme/eu`.

/// The parts, with a `\` before what would end one early.
pub fn shown<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let escaped = |part: &str| part.replace('\\', "\\\\").replace('/', "\\/");
    parts.into_iter().map(escaped).collect::<Vec<_>>().join("/")
}

/// Splits at each `/` that no `\` stands before.
pub fn parse(text: &str) -> Result<Vec<Box<str>>, String> {
    let (mut parts, mut part, mut chars) = (Vec::new(), String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => part.extend(chars.next()),
            '/' => parts.push(std::mem::take(&mut part).into_boxed_str()),
            _ => part.push(c),
        }
    }
    parts.push(part.into());
    if parts.iter().any(|part| part.trim().is_empty()) {
        return Err("a part of the scope is empty; write acme/eu".to_owned());
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_split_at_slashes_that_are_not_escaped() {
        let parts = |text| parse(text).expect("is fine").iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(parts("acme/eu"), ["acme", "eu"]);
        assert_eq!(parts(r"a\/b/c\\d"), ["a/b", r"c\d"]);
        assert_eq!(shown(["a/b", r"c\d"]), r"a\/b/c\\d");
        assert!(parse("acme//eu").is_err() && parse("").is_err());
    }
}
