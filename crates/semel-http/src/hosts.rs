//! Which host names have keys of their own: the authority of a request as one part of a key's scope.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Uri};
use semel::{Error, ErrorKind, PART_BYTES_MAX, RecordId, Result};

/// The part of the scope for a request that names no host, as HTTP/1.0 allows. No name of a host can be this.
const NO_HOST: &str = "no host";

/// Whether the host that a request names (`Host`, `:authority`, or the target's own) is part of the scope of its key.
///
/// ```
/// use semel_http::Hosts;
///
/// // Two tenants by host name never share a key; these two names are one service.
/// let hosts = Hosts::separate().same(["api.example", "www.example"])?;
/// # let _ = hosts;
/// # Ok::<(), semel::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    names: Names,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Names {
    #[default]
    Ignored,
    Separate {
        /// From a name to the one that its keys are filed under.
        filed_under: BTreeMap<Box<str>, Box<str>>,
    },
}

impl Hosts {
    /// The host does not count: a key is the same under every name of the service. The default of the layer, which
    /// stands inside one service. The names that reach it are often those of load balancers and pods, and a retry that
    /// comes by another of them must find its key.
    pub fn ignored() -> Self {
        Self { names: Names::Ignored }
    }

    /// Each host has keys of its own. The default of the proxy, which cannot know whether the service behind it answers
    /// differently by host name.
    ///
    /// Case, a dot at the end and the ports 80 and 443 do not make another host. A request that names no host has keys
    /// of its own.
    pub fn separate() -> Self {
        Self { names: Names::Separate { filed_under: BTreeMap::new() } }
    }

    /// These hosts are one. Their keys are filed under the first, so put the name first that has keys already.
    pub fn same(mut self, hosts: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        let hosts = hosts.into_iter().map(|host| readable(host.as_ref())).collect::<Result<Vec<_>>>()?;
        let Names::Separate { filed_under } = &mut self.names else {
            return Err(invalid("hosts that are ignored are the same already; use `Hosts::separate` first"));
        };
        let Some(first) = hosts.first().cloned() else { return Ok(self) };
        for host in hosts {
            if filed_under.insert(host.clone(), first.clone()).is_some() {
                return Err(invalid(&format!("the host `{host}` is named twice; join the two lists")));
            }
        }
        Ok(self)
    }

    /// Whether the host is part of the scope.
    pub fn is_separate(&self) -> bool {
        matches!(self.names, Names::Separate { .. })
    }

    /// The part of the scope for a request; `None` if hosts do not count.
    pub(crate) fn scope_part(&self, uri: &Uri, headers: &HeaderMap) -> Option<String> {
        let Names::Separate { filed_under } = &self.names else { return None };
        let Some(host) = stated(uri, headers) else { return Some(NO_HOST.to_owned()) };
        let host = normal(&host);
        let host = filed_under.get(&*host).map_or(&*host, |first| &**first);
        let part = format!("host:{host}");
        if part.len() <= PART_BYTES_MAX && part.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Some(part);
        }
        // Only the layer sees such hosts: the proxy refuses them. `#` tells the digest from a name.
        let digest = semel::Fingerprint::of_parts([host.as_bytes()]);
        Some(format!("host#{}", RecordId::from_bytes(*digest.as_bytes())))
    }
}

/// The host as the client stated it. The target's own goes before the header (RFC 9112, 3.2.2); several headers are
/// taken as one text, which is no host but always the same.
fn stated<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<Cow<'a, str>> {
    if let Some(authority) = uri.authority() {
        let host = authority.as_str();
        return Some(host.rsplit_once('@').map_or(host, |(_, host)| host).into());
    }
    let mut lines = headers.get_all(HOST).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
    let first = lines.next()?;
    Some(lines.fold(first, |all, line| format!("{all}, {line}").into()))
}

/// One spelling for each host: lower case, without a dot at the end, without the port of `http` or `https`.
fn normal(host: &str) -> Cow<'_, str> {
    let (name, port) = match host.rsplit_once(':') {
        // A colon inside of brackets belongs to an IPv6 address.
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, ""),
    };
    let port = match port {
        "" => None,
        digits => match digits.parse::<u16>() {
            // Without a port a host means the one of its scheme, which may be either.
            Ok(80 | 443) => None,
            Ok(port) => Some(port.to_string()),
            // No port at all: the text stays what it is, and is a host of its own.
            Err(_) => return host.to_ascii_lowercase().into(),
        },
    };
    let name = name.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(name);
    let address =
        name.strip_prefix('[').and_then(|inside| inside.strip_suffix(']')?.parse::<Ipv6Addr>().ok());
    let name: Cow<'_, str> = match address {
        Some(address) => format!("[{address}]").into(),
        None if name.bytes().any(|byte| byte.is_ascii_uppercase()) => name.to_ascii_lowercase().into(),
        None => name.into(),
    };
    match port {
        Some(port) => format!("{name}:{port}").into(),
        None => name,
    }
}

/// A host that a person wrote.
fn readable(host: &str) -> Result<Box<str>> {
    let authority = host
        .parse::<Authority>()
        .ok()
        .filter(|authority| !authority.host().is_empty() && !host.contains('@') && !host.ends_with(':'));
    match authority {
        Some(_) => Ok(normal(host).into()),
        None => {
            Err(invalid(&format!("`{host}` is not a host name; write `api.example` or `api.example:8443`")))
        }
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn part(hosts: &Hosts, target: &str, lines: &[&str]) -> Option<String> {
        let mut request = Request::builder().uri(target);
        for line in lines {
            request = request.header(HOST, *line);
        }
        let request = request.body(()).unwrap();
        hosts.scope_part(request.uri(), request.headers())
    }

    fn separate(host: &str) -> String {
        part(&Hosts::separate(), "/", &[host]).unwrap()
    }

    #[test]
    fn h31_one_host_has_one_part_however_it_is_spelt() {
        for (host, normal) in [
            ("api.example", "host:api.example"),
            ("API.Example", "host:api.example"),
            ("api.example.", "host:api.example"),
            ("api.example:80", "host:api.example"),
            ("api.example:443", "host:api.example"),
            ("API.example.:0443", "host:api.example"),
            ("api.example:", "host:api.example"),
            ("api.example:8443", "host:api.example:8443"),
            ("api.example.:8443", "host:api.example:8443"),
            ("[2001:DB8::0:1]:80", "host:[2001:db8::1]"),
            ("[2001:db8::1]", "host:[2001:db8::1]"),
            ("127.0.0.1:8080", "host:127.0.0.1:8080"),
            ("", "host:"),
            (".", "host:."),
        ] {
            assert_eq!(separate(host), normal, "{host}");
        }
    }

    #[test]
    fn h31_two_hosts_have_two_parts() {
        let hosts =
            ["a.example", "b.example", "a.example:8080", "a.example:99999", "a.example:x", "", "no host"];
        let mut parts: Vec<_> = hosts.map(separate).into();
        parts.push(part(&Hosts::separate(), "/", &[]).unwrap());
        parts.push(part(&Hosts::separate(), "/", &["a.example", "b.example"]).unwrap());
        parts.push(separate(&"a".repeat(600)));
        parts.push(separate(&"a".repeat(601)));
        for (i, one) in parts.iter().enumerate() {
            assert!(parts.iter().skip(i.saturating_add(1)).all(|other| other != one), "{one}");
            semel::Key::scoped([one], "http", "key").unwrap();
        }
    }

    #[test]
    fn h31_the_authority_of_the_target_goes_before_the_header() {
        let hosts = Hosts::separate();
        assert_eq!(part(&hosts, "http://A.example:80/x", &["b.example"]).as_deref(), Some("host:a.example"));
    }

    #[test]
    fn hosts_that_are_one_share_the_part_of_the_first() {
        let hosts = Hosts::separate().same(["API.example:443", "www.example"]).unwrap();
        for host in ["api.example", "WWW.example.", "www.example:80"] {
            assert_eq!(part(&hosts, "/", &[host]).as_deref(), Some("host:api.example"), "{host}");
        }
        assert_eq!(part(&hosts, "/", &["other.example"]).as_deref(), Some("host:other.example"));
        assert!(hosts.clone().same(["x.example", "WWW.example"]).is_err());
        for wrong in ["", "a b", "u@a", "http://a", "a:"] {
            assert!(hosts.clone().same([wrong]).is_err(), "{wrong}");
        }
        assert!(Hosts::ignored().same(["a"]).is_err());
    }

    #[test]
    fn hosts_that_are_ignored_have_no_part() {
        assert_eq!(part(&Hosts::default(), "/", &["a.example"]), None);
    }
}
