//! Which names stand where in a file. In TOML, what follows a `[table]` is in it: the mistake that is made most.

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
const RULES: [&str; 14] = [
    "methods",
    "scope",
    "lease",
    "retention",
    "lapse",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_the_wrong_table_is_told_where_it_belongs() {
        assert!(home("listen").is_some_and(|home| home.contains("top")));
        assert!(home("lease").is_some_and(|home| home.contains("[rules]")));
        assert_eq!(home("colour"), None);
    }
}
