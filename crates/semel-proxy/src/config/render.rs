//! What a file means, as a file that means the same: nothing is left to a default, and no secret is in it.

use semel_config::render::{Lines, listed, quoted, sized, table, timed};
use semel_config::value::word_for;
use semel_http::{Code, Profile, Rules, WhileRunning};
use semel_listen::ServerTls;
use semel_ops::access_log::ACCESS_LOG;
use semel_ops::store_setting::StoreFrom;

use super::callers::{Callers, OTHERWISE, SOURCE, Source};
use super::profile::{ALL, OFF, UNBOUNDED};
use super::root::Meaning;
use super::summary::Summary;
use super::values::{
    KEY_PRESENCE, KEY_SCOPE, LAPSE, ON_OUTAGE, ON_SERVER_ERROR, UNDERSCORES, UPSTREAM_VERSION,
};
use crate::settings::ProxySettings;

pub(super) fn written(meaning: &Meaning) -> String {
    let Meaning { settings, store, callers, keys } = meaning;
    let profile = &settings.http.profile;
    let mut text = format!("# {}\n\n", Summary::of(settings).lines().join("\n# "));
    text.push_str(&table("", root(settings, store)));
    text.push_str(&table("[principal]", principal(callers)));
    text.push_str(&table("[headers]", headers(profile)));
    text.push_str(&table("[key]", keys.lines(profile.key)));
    let status = |code: Code| (code.word(), profile.statuses.of(code).as_u16().to_string());
    text.push_str(&table("[statuses]", Code::ALL.map(status).into()));
    let common = rules(&profile.rules);
    text.push_str(&table("[rules]", common.clone()));
    for route in &settings.http.routes {
        // A route has the rules of all but for these, so only these are worth reading.
        let own = rules(&route.rules).into_iter().filter(|line| !common.contains(line));
        let lines = std::iter::once(("path", quoted(&route.path))).chain(own).collect();
        text.push_str(&table("[[route]]", lines));
    }
    text.push_str(&table("[quotas]", quotas(settings)));
    let tls = settings.listener.tls.as_ref().map(ServerTls::lines).unwrap_or_default();
    text.push_str(&table("[tls]", tls));
    text.push_str(&table("[bounds]", bounds(settings)));
    text.push_str(&table("[timeouts]", timeouts(settings)));
    text
}

fn root(settings: &ProxySettings, store: &StoreFrom) -> Lines {
    let mut lines = vec![
        ("upstream", quoted(&settings.upstream)),
        ("upstream_version", quoted(word_for(UPSTREAM_VERSION, &settings.upstream_version))),
    ];
    if let Some(file) = &settings.upstream_authorities {
        lines.push(("upstream_authorities", quoted(file.display())));
    }
    lines.push(("listen", quoted(settings.listener.listen)));
    let underscores = word_for(UNDERSCORES, &settings.underscores_in_headers);
    lines.push(("underscores_in_headers", quoted(underscores)));
    lines.push(("trusted_proxies", listed(settings.trusted_proxies.iter().map(quoted))));
    lines.push(("store", store.line(&settings.store)));
    lines.push(("admin", quoted(settings.admin.map_or_else(|| OFF.to_owned(), |admin| admin.to_string()))));
    if settings.admin.is_some_and(|admin| !admin.ip().is_loopback()) {
        lines.push(("admin_public", "true".to_owned()));
    }
    if let Some(tokens) = &settings.admin_tokens_file {
        lines.push(("tokens", quoted(tokens.display())));
    }
    if let Some(audit) = &settings.audit {
        lines.push(("audit", quoted(audit.display())));
    }
    lines.push(("access_log", quoted(word_for(ACCESS_LOG, &settings.access_log))));
    lines.push(("scope_prefix", listed(settings.http.scope.iter().map(quoted))));
    lines.push(("problem_base", quoted(&settings.http.profile.problem_base)));
    lines
}

fn principal(callers: &Callers) -> Lines {
    let mut lines = vec![("from", quoted(word_for(SOURCE, &callers.source)))];
    if let Some(header) = &callers.header {
        lines.push(("header", quoted(header)));
    }
    if let Some(cookie) = &callers.cookie {
        lines.push(("cookie", quoted(cookie)));
    }
    if let Some(token) = &callers.token {
        lines.extend(token.lines());
    }
    if !matches!(callers.source, Source::Peer | Source::Shared) {
        lines.push(("or", quoted(word_for(OTHERWISE, &callers.otherwise))));
    }
    lines
}

fn headers(profile: &Profile) -> Lines {
    let names = &profile.names;
    vec![
        ("key", quoted(&names.key)),
        ("aliases", listed(names.key_aliases.iter().map(quoted))),
        ("replayed", quoted(&names.replayed)),
        ("expires", quoted(names.expires.as_ref().map_or(OFF, |name| name.as_str()))),
        ("protected", quoted(&names.protected)),
    ]
}

fn rules(rules: &Rules) -> Lines {
    let statuses = rules.statuses_not_kept.iter().map(http::StatusCode::as_u16);
    let headers = rules.headers_kept.as_ref().map(|headers| listed(headers.iter().map(quoted)));
    let probe = rules.probe.as_ref().and_then(|probe| probe.description().map(str::to_owned));
    let attempts = rules.attempts_max.map(|most| most.to_string());
    vec![
        ("methods", listed(rules.methods.iter().map(quoted))),
        ("key", quoted(word_for(KEY_PRESENCE, &rules.key))),
        ("scope", quoted(word_for(KEY_SCOPE, &rules.scope))),
        ("lease", timed(rules.lease)),
        ("retention", timed(rules.retention)),
        ("lapse", quoted(word_for(LAPSE, &rules.lapse))),
        ("probe", probe.unwrap_or_else(|| quoted(OFF))),
        ("attempts_max", attempts.unwrap_or_else(|| quoted(UNBOUNDED))),
        ("on_server_error", quoted(word_for(ON_SERVER_ERROR, &rules.on_server_error))),
        ("statuses_not_kept", listed(statuses)),
        ("request_bytes_max", sized(rules.request_bytes_max as u64)),
        ("response_bytes_max", sized(rules.response_bytes_max as u64)),
        ("headers_kept", headers.unwrap_or_else(|| quoted(ALL))),
        ("fields_left_out", listed(rules.fields_left_out.iter().map(quoted))),
        (
            "while_running",
            match rules.while_running {
                WhileRunning::Reject => quoted("reject"),
                WhileRunning::Wait(span) => format!("{{ wait = {} }}", timed(span)),
            },
        ),
        ("on_outage", quoted(word_for(ON_OUTAGE, &rules.on_outage))),
    ]
}

fn quotas(settings: &ProxySettings) -> Lines {
    let quotas = settings.http.quotas.unwrap_or_default();
    let lines = [
        ("new_keys_per_minute", quotas.new_keys_per_minute.map(|keys| keys.to_string())),
        ("records", quotas.records.map(|records| records.to_string())),
        ("bytes", quotas.bytes.map(sized)),
    ];
    lines.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn bounds(settings: &ProxySettings) -> Lines {
    let held = ("held_bytes_max", sized(settings.http.held_bytes_max as u64));
    let mut lines = settings.listener.limits.lines(held);
    let caller_held = settings.http.caller_held_bytes_max.map(|bytes| sized(bytes as u64));
    lines.extend(caller_held.map(|bytes| ("caller_held_bytes_max", bytes)));
    lines.push(("probes_in_flight_max", settings.http.probes_in_flight_max.to_string()));
    lines.push(("upstream_idle_max", settings.upstream_limits.idle_max.to_string()));
    lines
}

fn timeouts(settings: &ProxySettings) -> Lines {
    let upstream = &settings.upstream_limits;
    settings.listener.timeouts.lines(&[
        ("connect", upstream.connect),
        ("response", upstream.response),
        ("upgraded_idle", upstream.upgraded_idle),
        ("upstream_idle", upstream.idle),
        ("store", settings.http.store_timeout),
    ])
}
