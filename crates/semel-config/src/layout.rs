//! Which names stand where in a file, and what may have been meant by a name that is none. In TOML, what follows a `[table]` is
//! in it: the mistake that is made most.

/// Names at the top of a file.
const TOP: [&str; 15] = [
    "upstream",
    "upstream_version",
    "upstream_authorities",
    "listen",
    "trusted_proxies",
    "store",
    "admin",
    "admin_public",
    "tokens",
    "audit",
    "profile",
    "access_log",
    "scope_prefix",
    "problem_base",
    "route",
];
/// Tables of a proxy.
const PROXY_TABLES: [&str; 9] =
    ["principal", "headers", "key", "statuses", "rules", "quotas", "tls", "bounds", "timeouts"];
/// Names that every route may have of its own.
const RULES: [&str; 15] = [
    "methods",
    "scope",
    "lease",
    "retention",
    "lapse",
    "probe",
    "attempts_max",
    "on_server_error",
    "statuses_not_kept",
    "request_bytes_max",
    "response_bytes_max",
    "headers_kept",
    "fields_left_out",
    "while_running",
    "on_outage",
];
/// How alike two names must be, from 0 to 1, for one to be taken for the other.
const ALIKE: f64 = 0.8;

/// Everything that a proxy reads at the top of a file.
pub fn of_a_proxy() -> impl Iterator<Item = &'static str> {
    TOP.into_iter().chain(PROXY_TABLES)
}

/// Where a name belongs that was written elsewhere.
pub fn home(name: &str) -> Option<&'static str> {
    if TOP.contains(&name) {
        return Some("at the top of the file, before the first [table]");
    }
    RULES.contains(&name).then_some("in [rules] or in a [[route]]")
}

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
    fn a_name_in_the_wrong_table_is_told_where_it_belongs() {
        assert!(home("listen").is_some_and(|home| home.contains("top")));
        assert!(home("lease").is_some_and(|home| home.contains("[rules]")));
        assert_eq!(home("colour"), None);
    }

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
