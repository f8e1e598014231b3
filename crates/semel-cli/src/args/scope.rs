//! The parts of a scope, as they are typed.

/// The parts of a scope.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope(pub(super) Vec<Box<str>>);

/// Splits at each `/` that no `\` stands before.
pub(super) fn scope(text: &str) -> Result<Scope, String> {
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
    Ok(Scope(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_split_at_slashes_that_are_not_escaped() {
        let parts =
            |text| scope(text).expect("is fine").0.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(parts("acme/eu"), ["acme", "eu"]);
        assert_eq!(parts(r"a\/b/c\\d"), ["a/b", r"c\d"]);
        assert!(scope("acme//eu").is_err() && scope("").is_err());
    }
}
