//! `[principal]`: who a caller is, and where the secrets are that tell.

use http::HeaderName;
use ipnet::IpNet;
use semel_http::Principal;

use super::jwt::{self, Token};
use super::values::header;
use semel_config::Table;
use semel_config::value::Words;
use semel_config::value::word;

/// Where a caller's name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Authorization,
    Header,
    Peer,
    Jwt,
    Shared,
}

/// Who a caller is that the source does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// Whoever shares its address.
    Peer,
    /// Everybody.
    Shared,
    /// Nobody: a request with a key is refused.
    Nobody,
}

pub(super) const SOURCE: &Words<Source> = &[
    ("authorization", Source::Authorization),
    ("header", Source::Header),
    ("peer", Source::Peer),
    ("jwt", Source::Jwt),
    ("shared", Source::Shared),
];
pub(super) const OTHERWISE: &Words<Otherwise> =
    &[("peer", Otherwise::Peer), ("shared", Otherwise::Shared), ("none", Otherwise::Nobody)];

/// What `[principal]` says.
#[derive(Clone, Debug)]
pub(super) struct Callers {
    pub(super) source: Source,
    pub(super) header: Option<HeaderName>,
    pub(super) token: Option<Token>,
    pub(super) otherwise: Otherwise,
    pub(super) trusted_proxies: Vec<IpNet>,
}

pub(super) fn callers(mut table: Table<'_>, trusted_proxies: &[IpNet]) -> Callers {
    let source = table.read("from", word(SOURCE)).unwrap_or(Source::Authorization);
    let otherwise = table.read("or", word(OTHERWISE)).unwrap_or(match source {
        Source::Authorization => Otherwise::Peer,
        Source::Header | Source::Peer | Source::Jwt | Source::Shared => Otherwise::Nobody,
    });
    let callers = Callers {
        source,
        header: table.read("header", header),
        token: jwt::token(&mut table, source),
        otherwise,
        trusted_proxies: trusted_proxies.to_vec(),
    };
    callers.judge(&table);
    table.finish();
    callers
}

impl Callers {
    /// What was said must be of use: a setting that does nothing hides a mistake.
    fn judge(&self, table: &Table<'_>) {
        if self.source == Source::Header && !table.has("header") {
            table.wrong("header", "is missing: which one? Write header = \"x-api-key\"");
        }
        if self.source != Source::Header && table.has("header") {
            table.wrong("header", "does nothing without from = \"header\"");
        }
        if matches!(self.source, Source::Peer | Source::Shared) && table.has("or") {
            table.wrong("or", "does nothing: every caller has an address, or is the one that all are");
        }
    }

    /// The principal; `None` if something that it needs is wrong, which was told.
    pub(super) fn principal(&self) -> Option<Principal> {
        let first = match self.source {
            Source::Authorization => Principal::header("authorization"),
            Source::Header => Principal::header(self.header.as_ref()?.as_str()),
            Source::Peer => self.peer(),
            Source::Jwt => self.token.as_ref()?.principal(),
            Source::Shared => Principal::shared(),
        };
        Some(match self.otherwise {
            Otherwise::Peer => first.or(self.peer()),
            Otherwise::Shared => first.or(Principal::shared()),
            Otherwise::Nobody => first,
        })
    }

    fn peer(&self) -> Principal {
        if self.trusted_proxies.is_empty() {
            Principal::peer_address()
        } else {
            Principal::peer_address_behind(self.trusted_proxies.clone())
        }
    }
}

/// `10.0.0.0/8`, or one address.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    let net = text.parse::<IpNet>().or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from));
    let net = net.map_err(|_| format!("\"{text}\", no network; write \"10.0.0.0/8\" or \"192.0.2.7\""))?;
    if net.prefix_len() == 0 {
        return Err(format!(
            "\"{text}\", every address there is: then any client could pick who it is; name your proxies"
        ));
    }
    Ok(net.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_read_and_all_of_them_is_none() {
        assert_eq!(network("10.1.2.3/8").map(|net| net.to_string()), Ok("10.0.0.0/8".to_owned()));
        assert_eq!(network("::1").map(|net| net.to_string()), Ok("::1/128".to_owned()));
        assert!(network("0.0.0.0/0").expect_err("is all").contains("any client"));
        assert!(network("ten").is_err() && network("10.0.0.0/33").is_err());
    }
}
