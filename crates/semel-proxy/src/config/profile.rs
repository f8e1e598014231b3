//! `profile`, `[headers]`, `[statuses]`, `[rules]` and `[[route]]`: what clients see. A route has rules of its own, the
//! same names on top of what all have.

use std::time::Duration;

use http::HeaderName;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, FORWARDED, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use matchit::Router;
use semel::{LEASE_MAX, Lapse, RETENTION_MAX};
use semel_http::{Code, Names, Probe, Profile, Route, Rules, WhileRunning};
use toml::de::DeTable;

use super::source::{Named, Overrides};
use super::values::{
    KEY_PRESENCE, KEY_SCOPE, LAPSE, ON_OUTAGE, ON_SERVER_ERROR, PROFILE, header, json_path, method, path,
    refusal, status_not_kept,
};
use crate::probe::{PathTemplate, ProbeClient, TIMEOUT_DEFAULT, UpstreamProbe};
use semel_config::Table;
use semel_config::value::{
    Read, Value, any_text, bytes, count, kind, list, or_none, text, time, word, wrong,
};

/// The word for a header that is left out.
pub(super) const OFF: &str = "off";
/// The shortest span that means anything.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest body that may be held whole: what is longer has no business in a store of outcomes.
const BODY_BYTES_MAX: u64 = 1 << 30;
/// The longest that a probe may take: its client waits for it.
const PROBE_TIMEOUT_MAX: Duration = Duration::from_mins(5);
/// What a probe looks like.
const PROBE: &str = "{ path = \"/charges?key={key}\", headers = [\"authorization\"] }";
/// The word for no bound.
pub(super) const UNBOUNDED: &str = "unbounded";
/// The word for every header that may be kept.
pub(super) const ALL: &str = "all";

/// A profile of the table, with what the file says instead.
pub(super) fn profile(root: &mut Table<'_>, overrides: &Overrides, client: &ProbeClient) -> Profile {
    let written = root.read("profile", word(PROFILE));
    let mut profile = match overrides.profile.or(written).unwrap_or_default() {
        Named::Ietf => Profile::ietf(),
        Named::Stripe => Profile::stripe(),
    };
    if let Some(base) = root.read("problem_base", any_text) {
        profile.problem_base = base.into();
    }
    names(root.table("headers"), &mut profile.names);
    let mut statuses = root.table("statuses");
    for code in Code::ALL {
        let status = statuses.read(code.word(), refusal);
        if let Some(status) = status.filter(|status| *status != profile.statuses.of(code)) {
            profile.statuses = profile.statuses.with(code, status);
        }
    }
    statuses.finish();
    let mut table = root.table("rules");
    profile.rules = rules(&mut table, profile.rules, client);
    table.finish();
    profile
}

fn names(mut table: Table<'_>, names: &mut Names) {
    table.set("key", &mut names.key, header);
    table.set("aliases", &mut names.key_aliases, list(header));
    table.set("replayed", &mut names.replayed, header);
    table.set("expires", &mut names.expires, or_none(OFF, header));
    table.set("protected", &mut names.protected, header);
    let keys =
        std::iter::once(("key", &names.key)).chain(names.key_aliases.iter().map(|name| ("aliases", name)));
    let told = [
        ("replayed", Some(&names.replayed)),
        ("expires", names.expires.as_ref()),
        ("protected", Some(&names.protected)),
    ];
    let told = told.into_iter().filter_map(|(field, name)| Some((field, name?)));
    let mut seen: Vec<&HeaderName> = Vec::new();
    for (field, name) in keys.chain(told) {
        if seen.contains(&name) {
            table.wrong(
                field,
                &format!("names \"{name}\", which means something else already; give each a name of its own"),
            );
        }
        seen.push(name);
    }
    table.finish();
}

/// The rules, with what the table says instead.
fn rules(table: &mut Table<'_>, mut rules: Rules, client: &ProbeClient) -> Rules {
    table.set("methods", &mut rules.methods, list(method));
    table.set("key", &mut rules.key, word(KEY_PRESENCE));
    table.set("scope", &mut rules.scope, word(KEY_SCOPE));
    table.set("lease", &mut rules.lease, time(SHORTEST..=LEASE_MAX));
    table.set("retention", &mut rules.retention, time(SHORTEST..=RETENTION_MAX));
    table.set("lapse", &mut rules.lapse, word(LAPSE));
    table.set("probe", &mut rules.probe, or_none(OFF, probe(client)));
    judge_probe(table, &rules);
    table.set("attempts_max", &mut rules.attempts_max, or_none(UNBOUNDED, count(1..=u64::from(u32::MAX))));
    table.set("on_server_error", &mut rules.on_server_error, word(ON_SERVER_ERROR));
    table.set("statuses_not_kept", &mut rules.statuses_not_kept, list(status_not_kept));
    table.set("request_bytes_max", &mut rules.request_bytes_max, bytes(0..=BODY_BYTES_MAX));
    table.set("response_bytes_max", &mut rules.response_bytes_max, bytes(0..=BODY_BYTES_MAX));
    table.set("headers_kept", &mut rules.headers_kept, or_none(ALL, list(header)));
    table.set("fields_left_out", &mut rules.fields_left_out, list(json_path));
    table.set("while_running", &mut rules.while_running, while_running);
    table.set("on_outage", &mut rules.on_outage, word(ON_OUTAGE));
    rules
}

/// `{ path = "/charges?key={key}", headers = ["authorization"], timeout = "5s" }`.
fn probe(client: &ProbeClient) -> impl Fn(&Value<'_>) -> Read<Probe> {
    |value| {
        let Some(fields) = value.get_ref().as_table() else {
            return wrong(value, format!("is {}; write {PROBE}, or \"{OFF}\"", kind(value)));
        };
        let field =
            |wanted: &str| fields.iter().find(|(name, _)| name.get_ref() == wanted).map(|(_, value)| value);
        let known = ["path", "headers", "timeout"];
        if let Some((name, _)) = fields.iter().find(|(name, _)| !known.contains(&name.get_ref().as_ref())) {
            return wrong(value, format!("has the field `{}`; write {PROBE}", name.get_ref()));
        }
        let Some(path) = field("path") else { return wrong(value, format!("has no `path`; write {PROBE}")) };
        // Two callers may use one key: the upstream must be able to tell them apart, so this has no default.
        let Some(headers) = field("headers") else {
            return wrong(
                value,
                "has no `headers`: by which headers of the client does the upstream tell callers apart? Write \
                 headers = [\"authorization\"], or headers = [] if no two callers ever use the same key",
            );
        };
        let timeout = field("timeout").map(time(SHORTEST..=PROBE_TIMEOUT_MAX)).transpose();
        let (path, headers) = (text(PathTemplate::parse)(path), list(probe_header)(headers));
        let probe =
            UpstreamProbe { path: path?, headers: headers?, timeout: timeout?.unwrap_or(TIMEOUT_DEFAULT) };
        Ok(probe.probe(client))
    }
}

/// A header of the client that a probe may carry: none that frames or routes a request, and none that the proxy writes.
fn probe_header(value: &Value<'_>) -> Read<HeaderName> {
    let name = header(value)?;
    let is_own =
        [CONNECTION, CONTENT_LENGTH, EXPECT, FORWARDED, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE]
            .contains(&name);
    if is_own
        || ["x-forwarded-", "x-real-ip", "proxy-", "keep-alive"]
            .iter()
            .any(|start| name.as_str().starts_with(start))
    {
        return wrong(
            value,
            format!("holds \"{name}\", which a probe cannot take over from the client; leave it out"),
        );
    }
    Ok(name)
}

/// A probe finds out what became of a run; that it runs again unasked would be the opposite.
fn judge_probe(table: &Table<'_>, rules: &Rules) {
    if rules.probe.is_some() && rules.lapse == Lapse::Rerun {
        let field = if table.has("lapse") { "lapse" } else { "probe" };
        table.wrong(
            field,
            "cannot be: with a probe, a run whose end is not known is never repeated unasked. Write lapse = \"hold\", or probe = \"off\"",
        );
    }
}

/// `"reject"` or `{ wait = "10s" }`.
fn while_running(value: &Value<'_>) -> Read<WhileRunning> {
    const WRITE: &str = "write \"reject\" or { wait = \"10s\" }";
    if let Some(word) = value.get_ref().as_str() {
        return if word == "reject" {
            Ok(WhileRunning::Reject)
        } else {
            wrong(value, format!("is \"{word}\"; {WRITE}"))
        };
    }
    let fields = value.get_ref().as_table();
    let mut fields = fields.into_iter().flat_map(DeTable::iter);
    match (fields.next(), fields.next()) {
        (Some((name, span)), None) if name.get_ref() == "wait" => {
            time(SHORTEST..=LEASE_MAX)(span).map(WhileRunning::Wait)
        }
        _ => wrong(value, format!("is {}; {WRITE}", kind(value))),
    }
}

/// Every route of the file, each on top of the rules that all have.
pub(super) fn routes(root: &mut Table<'_>, common: &Rules, client: &ProbeClient) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for mut table in root.tables("route") {
        if !table.has("path") {
            table.wrong("path", "is missing: which paths is this route for? Write path = \"/charges\"");
        }
        let path = table.read("path", text(path));
        let own = rules(&mut table, common.clone(), client);
        if let Some(path) = path {
            let route = Route { path, rules: own };
            if let Err(why) = judged(&route, &routes) {
                table.wrong("path", &format!("is \"{}\"{why}", route.path));
            }
            routes.push(route);
        }
        table.finish();
    }
    routes
}

/// A path must be one, and nothing that is asked for may be under two routes.
fn judged(route: &Route, others: &[Route]) -> Result<(), String> {
    if let Err(error) = together(&[&route.path]) {
        return Err(format!(", no pattern: {error}; write /charges, /charges/{{id}} or /v1/{{*rest}}"));
    }
    for other in others.iter().filter(|other| other.path == route.path) {
        if let Some(method) = route.rules.methods.iter().find(|method| other.rules.methods.contains(method)) {
            return Err(format!(
                ", which has a route for {method} already; join the two, or give each its own methods"
            ));
        }
    }
    let mut differing = others.iter().filter(|other| other.path != route.path);
    match differing
        .find(|other| together(&[&other.path]).is_ok() && together(&[&other.path, &route.path]).is_err())
    {
        Some(other) => {
            Err(format!(", which clashes with \"{}\": a path could be meant for both", other.path))
        }
        None => Ok(()),
    }
}

fn together(paths: &[&str]) -> Result<(), String> {
    let mut known = Router::new();
    paths.iter().try_for_each(|path| known.insert(*path, ()).map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn route(path: &str, methods: &[Method]) -> Route {
        Route { path: path.to_owned(), rules: Rules { methods: methods.to_vec(), ..Rules::default() } }
    }

    #[test]
    fn one_path_may_have_a_route_for_each_method_and_not_two_for_one() {
        let others = [route("/a", &[Method::POST])];
        assert_eq!(judged(&route("/a", &[Method::PUT]), &others), Ok(()));
        assert!(
            judged(&route("/a", &[Method::PUT, Method::POST]), &others)
                .is_err_and(|why| why.contains("for POST already"))
        );
    }

    #[test]
    fn two_patterns_that_mean_the_same_path_clash_and_one_that_is_narrower_does_not() {
        let others = [route("/a/{id}", &[Method::POST])];
        assert!(
            judged(&route("/a/{name}", &[Method::POST]), &others)
                .is_err_and(|why| why.contains("clashes with \"/a/{id}\""))
        );
        assert_eq!(judged(&route("/a/b", &[Method::POST]), &others), Ok(()));
    }

    #[test]
    fn what_is_no_pattern_is_told_what_one_looks_like() {
        for path in ["/{", "/{}", "/a/{*rest}/b", "/x{a}{b}"] {
            assert!(judged(&route(path, &[]), &[]).is_err_and(|why| why.contains("/v1/{*rest}")), "{path}");
        }
    }
}
