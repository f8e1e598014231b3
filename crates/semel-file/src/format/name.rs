//! Which file is which.

/// The file that names the store.
pub(crate) const IDENTITY: &str = "semel.store";
/// The file that says how far the log was acknowledged.
pub(crate) const TAIL: &str = "semel.tail";
/// What is being made, and means nothing until it has its real name.
const UNFINISHED: &str = ".tmp";
const SEGMENT: &str = ".log";
const HINT: &str = ".hint";

/// The name of a segment.
pub(crate) fn segment(number: u32) -> String {
    format!("{number:08x}{SEGMENT}")
}

/// The name of a segment's hint.
pub(crate) fn hint(number: u32) -> String {
    format!("{number:08x}{HINT}")
}

/// The name of a file while it is being made.
pub(crate) fn unfinished(name: &str) -> String {
    format!("{name}{UNFINISHED}")
}

/// What a file is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Identity,
    Tail,
    Segment(u32),
    Hint(u32),
    Unfinished,
    Foreign,
}

/// What a file is, by its name.
pub(crate) fn role(name: &str) -> Role {
    if name == IDENTITY {
        return Role::Identity;
    }
    if name == TAIL {
        return Role::Tail;
    }
    if let Some(whole) = name.strip_suffix(UNFINISHED) {
        return if role(whole) == Role::Foreign { Role::Foreign } else { Role::Unfinished };
    }
    let number = |suffix: &str| {
        let digits = name.strip_suffix(suffix)?;
        let number = u32::from_str_radix(digits, 16).ok()?;
        // One number has one spelling.
        (format!("{number:08x}") == digits).then_some(number)
    };
    match (number(SEGMENT), number(HINT)) {
        (Some(number), _) => Role::Segment(number),
        (None, Some(number)) => Role::Hint(number),
        (None, None) => Role::Foreign,
    }
}

/// The number of a segment, if this is the name of one.
pub(crate) fn segment_number(name: &str) -> Option<u32> {
    match role(name) {
        Role::Segment(number) => Some(number),
        Role::Identity | Role::Tail | Role::Hint(_) | Role::Unfinished | Role::Foreign => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_a_file_is() {
        assert_eq!(role(&segment(0x1f)), Role::Segment(31));
        assert_eq!(role(&hint(u32::MAX)), Role::Hint(u32::MAX));
        assert_eq!(role(&unfinished(&segment(7))), Role::Unfinished);
        assert_eq!((role(IDENTITY), role(TAIL)), (Role::Identity, Role::Tail));
        for foreign in ["1f.log", "0000001F.log", "photo.jpg", "photo.tmp", ".log", "000000001.hint"] {
            assert_eq!(role(foreign), Role::Foreign, "{foreign}");
        }
    }
}
