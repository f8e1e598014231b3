//! `[key]`: what a key may look like, and what it belongs to beside its caller.

use semel::NAME_BYTES_MAX;
use semel_config::Table;
use semel_config::render::{Lines, listed, quoted};
use semel_config::value::{Words, any_text, count, list, word, word_for};
use semel_http::{Hosts, KeyForm, KeyIdentity, UnquotedKeys};

const UNQUOTED: &Words<UnquotedKeys> =
    &[("accepted", UnquotedKeys::Accepted), ("refused", UnquotedKeys::Refused)];
const HOSTS: &Words<HostKeys> = &[("separate", HostKeys::Separate), ("ignored", HostKeys::Ignored)];
const IDENTITY: &Words<KeyIdentity> =
    &[("full", KeyIdentity::Full), ("upgrade", KeyIdentity::Upgrade), ("0.1", KeyIdentity::V0_1)];

/// Whether each host has keys of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HostKeys {
    /// A proxy cannot know whether the service behind it answers differently by host name, so this is its default.
    #[default]
    Separate,
    Ignored,
}

/// What keys belong to.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) hosts: Hosts,
    pub(super) identity: KeyIdentity,
    kind: HostKeys,
    same_hosts: Vec<Vec<String>>,
}

pub(super) fn keys(mut table: Table<'_>, form: &mut KeyForm) -> Keys {
    table.set("unquoted", &mut form.unquoted, word(UNQUOTED));
    table.set("chars_max", &mut form.chars_max, count(1..=NAME_BYTES_MAX as u64));
    let kind = table.read("hosts", word(HOSTS)).unwrap_or_default();
    let same_hosts = table.read("same_hosts", list(list(any_text))).unwrap_or_default();
    let identity = table.read("identity", word(IDENTITY)).unwrap_or_default();
    let hosts = match kind {
        HostKeys::Ignored => Hosts::ignored(),
        HostKeys::Separate => separate(&table, &same_hosts),
    };
    if kind == HostKeys::Ignored && !same_hosts.is_empty() {
        table.wrong("same_hosts", "does nothing with hosts = \"ignored\": all hosts are one");
    }
    table.finish();
    Keys { hosts, identity, kind, same_hosts }
}

fn separate(table: &Table<'_>, same_hosts: &[Vec<String>]) -> Hosts {
    same_hosts.iter().fold(Hosts::separate(), |hosts, group| {
        if group.len() < 2 {
            table.wrong(
                "same_hosts",
                "has a list of fewer than two hosts; write [[\"api.example\", \"www.example\"]]",
            );
        }
        hosts.clone().same(group).unwrap_or_else(|error| {
            table.wrong("same_hosts", &format!("is not usable: {error}"));
            hosts
        })
    })
}

impl Keys {
    /// The lines of a file that say the same.
    pub(super) fn lines(&self, form: KeyForm) -> Lines {
        let same_hosts = self.same_hosts.iter().map(|group| listed(group.iter().map(quoted)));
        let mut lines = vec![
            ("unquoted", quoted(word_for(UNQUOTED, &form.unquoted))),
            ("chars_max", form.chars_max.to_string()),
            ("hosts", quoted(word_for(HOSTS, &self.kind))),
        ];
        if !self.same_hosts.is_empty() {
            lines.push(("same_hosts", listed(same_hosts)));
        }
        lines.push(("identity", quoted(word_for(IDENTITY, &self.identity))));
        lines
    }
}
