//! What a proxy will do, in four lines for people: the start of `semel proxy`, and the top of `semel proxy --check`.

use std::net::SocketAddr;

use semel::Lapse;
use semel_http::{Probe, Route, Rules};
use semel_ops::store_url::Address;

use super::values::LAPSE;
use crate::settings::ProxySettings;
use semel_config::value::word_for;

/// How many routes are named before the rest is only counted.
const ROUTES_NAMED_MAX: usize = 3;

/// What a proxy will do. The addresses are those that it listens on, which differ from the settings where these ask for
/// any free port.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    /// What the file and the command line mean.
    pub settings: &'a ProxySettings,
    /// Where clients come.
    pub listening: SocketAddr,
    /// Where health, metrics and the dashboard are.
    pub admin: Option<SocketAddr>,
    /// What stored outcomes survive.
    pub survives: &'a str,
}

impl<'a> Summary<'a> {
    /// What the settings alone say, before anything was opened.
    pub(super) fn of(settings: &'a ProxySettings) -> Self {
        let ProxySettings { listener, admin, store, .. } = settings;
        Self { settings, listening: listener.listen, admin: *admin, survives: expected(store) }
    }

    /// Where requests go, what outcomes survive, how callers are told apart, and what happens after a crash.
    pub fn lines(&self) -> [String; 4] {
        let Self { settings, survives, .. } = self;
        let hosts = if settings.http.hosts.is_separate() { "; each host has keys of its own" } else { "" };
        [
            self.upstream(),
            format!("store: {}; outcomes survive {survives}", settings.store),
            format!("callers: told apart by {}{hosts}", settings.principal),
            format!("after a crash: {}", after_a_crash(settings)),
        ]
    }

    fn upstream(&self) -> String {
        let Self { settings, listening, admin, .. } = self;
        let scheme = if settings.listener.tls.is_some() { "https" } else { "http" };
        let admin = admin.map_or_else(String::new, |admin| {
            format!("; health, metrics and the dashboard on http://{admin}")
        });
        format!("listening on {scheme}://{listening}, proxying to {}{admin}", settings.upstream)
    }
}

/// What a store is expected to survive, as far as its address says.
#[expect(clippy::wildcard_enum_match_arm, reason = "of every other store, its server knows")]
fn expected(store: &Address) -> &'static str {
    match store {
        Address::Memory => "nothing: they end with the process",
        Address::File(_) => {
            "kill -9, a crash of the machine, and loss of power, if the file system keeps what is synced"
        }
        _ => "what the settings of its server say, which are read at the start",
    }
}

/// What becomes of a key whose run has no known end, and on which routes it is otherwise.
fn after_a_crash(settings: &ProxySettings) -> String {
    let rules = &settings.http.profile.rules;
    let common = policy(rules);
    let all = match (&rules.probe, rules.lapse) {
        (Some(_), _) => {
            "the upstream is asked what became of a run that has no known end, and the key is held if it cannot say"
        }
        (None, Lapse::Hold) => "a key whose run has no known end is held until an operator decides",
        (None, Lapse::Rerun) => "a key whose run has no known end runs again with the next retry",
    };
    let own = match rules.probe.as_ref().and_then(Probe::description) {
        Some(probe) => format!("probe = {probe}"),
        None => format!("lapse = \"{common}\""),
    };
    let others = ["probe", "hold", "rerun"].into_iter().filter(|word| *word != common);
    let others: String = others.filter_map(|word| on_routes(settings, word)).collect();
    format!("{all} ({own}){others}")
}

/// In one word, what becomes of a key whose run has no known end.
fn policy(rules: &Rules) -> &'static str {
    if rules.probe.is_some() { "probe" } else { word_for(LAPSE, &rules.lapse) }
}

/// The routes with this policy, if there are any.
fn on_routes(settings: &ProxySettings, word: &str) -> Option<String> {
    let routes = settings.http.routes.iter().filter(|route| policy(&route.rules) == word);
    let routes: Vec<_> = routes.map(named).collect();
    let shown =
        routes.get(..ROUTES_NAMED_MAX.min(routes.len())).filter(|shown| !shown.is_empty())?.join(", ");
    let more = match routes.len().saturating_sub(ROUTES_NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("; {word} on {shown}{more}"))
}

fn named(route: &Route) -> String {
    let Rules { methods, .. } = &route.rules;
    let methods: Vec<_> = methods.iter().map(http::Method::as_str).collect();
    format!("{} {}", methods.join("/"), route.path)
}
