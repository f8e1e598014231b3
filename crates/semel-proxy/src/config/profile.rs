//! `profile`, `[headers]`, `[key]`, `[statuses]` and `[rules]`: what clients see.

use http::HeaderName;
use semel::NAME_BYTES_MAX;
use semel_http::{Code, Names, Profile};

use super::rules;
use super::source::{Named, Overrides};
use super::values::{BARE, PROFILE, header, refusal};
use semel_config::Table;
use semel_config::value::{any_text, count, list, or_none, word};

/// The word for a header that is left out.
pub(super) const OFF: &str = "off";

/// A profile of the table, with what the file says instead.
pub(super) fn profile(root: &mut Table<'_>, overrides: &Overrides) -> Profile {
    let written = root.read("profile", word(PROFILE));
    let mut profile = match overrides.profile.or(written).unwrap_or_default() {
        Named::Ietf => Profile::ietf(),
        Named::Stripe => Profile::stripe(),
    };
    if let Some(base) = root.read("problem_base", any_text) {
        profile.problem_base = base.into();
    }
    names(root.table("headers"), &mut profile.names);
    let mut key = root.table("key");
    key.set("bare", &mut profile.key.bare, word(BARE));
    key.set("chars_max", &mut profile.key.chars_max, count(1..=NAME_BYTES_MAX as u64));
    key.finish();
    let mut statuses = root.table("statuses");
    for code in Code::ALL {
        let status = statuses.read(code.word(), refusal);
        if let Some(status) = status.filter(|status| *status != profile.statuses.of(code)) {
            profile.statuses = profile.statuses.with(code, status);
        }
    }
    statuses.finish();
    let mut table = root.table("rules");
    profile.rules = rules::rules(&mut table, profile.rules);
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
