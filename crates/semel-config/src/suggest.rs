//! What may have been meant by a name that is none.

/// How alike two names must be, from 0 to 1, for one to be taken for the other.
const ALIKE: f64 = 0.8;

/// The name that is most like the one that was written, if any is like it at all.
pub(crate) fn nearest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let alike = |name: &'n str| (strsim::jaro_winkler(written, name), name);
    let best = names.into_iter().map(alike).filter(|(alike, _)| *alike >= ALIKE);
    best.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, name)| name)
}

/// `; did you mean …?`, or nothing.
pub(crate) fn did_you_mean<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    nearest(written, names).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_a_finger_is_understood_and_another_word_is_not() {
        let names = ["listen", "lease", "retention", "upstream"];
        for (written, meant) in
            [("lisen", "listen"), ("leese", "lease"), ("retension", "retention"), ("upsteam", "upstream")]
        {
            assert_eq!(nearest(written, names), Some(meant));
        }
        assert_eq!(nearest("colour", names), None);
        assert_eq!(did_you_mean("colour", names), "");
    }
}
