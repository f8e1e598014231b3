//! A probe as the configuration names one (H57): a request to the upstream that says what became of a run whose end is not
//! known. 2xx: it took effect, and that response is the outcome. 404: it did not. Anything else: not known.

use std::fmt::Write as _;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::HOST;
use http::{HeaderName, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use semel_config::render::{listed, quoted, timed};
use semel_http::{Probe, ProbeAnswer, ProbeRequest, Reply, RequestBody};

use crate::request::{Target, strip, strip_request, strip_underscores};
use crate::settings::{ProxySettings, UnderscoresInHeaders};
use crate::upstream::{Sent, Upstream, UpstreamBody};

/// How long a probe may take, unless the file says otherwise.
pub(crate) const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
/// Stands for the client's key, percent-encoded.
const KEY: &str = "key";
/// Stands for the path that the client sent.
const PATH: &str = "path";

/// What a probe asks for.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamProbe {
    pub(crate) path: PathTemplate,
    /// Which of the client's headers it carries.
    pub(crate) headers: Vec<HeaderName>,
    pub(crate) timeout: Duration,
}

/// The target of a probe: a path, and perhaps a query, with places for the key and for the client's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathTemplate {
    text: Box<str>,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Key,
    Path,
}

/// How probes reach the upstream. A configuration names probes before there is a proxy, so this is filled in when it starts.
#[derive(Clone, Default)]
pub struct ProbeClient(Arc<RwLock<Option<Arc<Prober>>>>);

/// The upstream, as probes see it.
pub(crate) struct Prober {
    upstream: Arc<Upstream>,
    target: Target,
    underscores: UnderscoresInHeaders,
}

impl UpstreamProbe {
    /// The probe that the layer asks.
    pub(crate) fn probe(self, client: &ProbeClient) -> Probe {
        let (client, timeout, description) = (client.clone(), self.timeout, self.description());
        let asked = Arc::new(self);
        let ask = move |request| {
            let (asked, prober) = (Arc::clone(&asked), client.prober());
            async move {
                match prober {
                    Some(prober) => prober.ask(&asked, &request).await,
                    None => ProbeAnswer::CannotTell,
                }
            }
        };
        Probe::new(ask).timeout(timeout).described(description)
    }

    /// As a configuration file has it.
    fn description(&self) -> String {
        let headers = listed(self.headers.iter().map(quoted));
        let (path, timeout) = (quoted(&self.path.text), timed(self.timeout));
        format!("{{ path = {path}, headers = {headers}, timeout = {timeout} }}")
    }

    /// The request that asks. `None` if the key makes its target too long.
    fn request(&self, asked: &ProbeRequest) -> Option<Request<RequestBody<semel_listen::ClientBody>>> {
        let target = self.path.filled(&asked.key, asked.target.path());
        let mut request = Request::new(RequestBody::empty());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = target.parse::<Uri>().ok()?;
        let names = self.headers.iter().chain([&HOST]);
        for (name, value) in names.flat_map(|name| asked.headers.get_all(name).iter().map(move |v| (name, v)))
        {
            request.headers_mut().append(name, value.clone());
        }
        Some(request)
    }
}

impl PathTemplate {
    /// A path with `{key}` in it. The error goes on after "is".
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        const WRITE: &str = "write \"/charges?key={key}\"";
        let template = Self { text: text.into(), parts: parts(text)? };
        let sample = template.filled("k", "/");
        if !sample.starts_with('/') || sample.contains('#') || sample.parse::<Uri>().is_err() {
            return Err(format!("\"{text}\", not a path; {WRITE}"));
        }
        if !template.parts.contains(&Part::Key) {
            return Err(format!("\"{text}\", without the key that is asked for; {WRITE}"));
        }
        Ok(template)
    }

    fn filled(&self, key: &str, path: &str) -> String {
        let mut filled = String::with_capacity(self.text.len().saturating_add(key.len()));
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Key => percent_encode(key, &mut filled),
                Part::Path => filled.push_str(path),
            }
        }
        filled
    }
}

fn parts(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, name)) = rest.split_once('{') {
        let (name, after) =
            name.split_once('}').ok_or_else(|| format!("\"{text}\", with a {{ that is not closed"))?;
        parts.push(Part::Text(before.into()));
        parts.push(match name {
            KEY => Part::Key,
            PATH => Part::Path,
            _ => {
                return Err(format!("\"{text}\", with {{{name}}} in it; there are {{{KEY}}} and {{{PATH}}}"));
            }
        });
        rest = after;
    }
    parts.push(Part::Text(rest.into()));
    Ok(parts)
}

/// Everything but the unreserved characters of RFC 3986, so that a key is one value wherever it stands in a target.
fn percent_encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            into.push(char::from(byte));
        } else {
            // Writing into memory does not fail.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

impl ProbeClient {
    /// Probes go to this upstream from now on.
    pub(crate) fn connect(&self, prober: Prober) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(prober));
    }

    fn prober(&self) -> Option<Arc<Prober>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for ProbeClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProbeClient").finish_non_exhaustive()
    }
}

impl Prober {
    pub(crate) fn new(settings: &ProxySettings, upstream: Arc<Upstream>) -> semel::Result<Self> {
        let target = Target::new(&settings.upstream, settings.upstream_version)?;
        Ok(Self { upstream, target, underscores: settings.underscores_in_headers })
    }

    async fn ask(&self, probe: &UpstreamProbe, asked: &ProbeRequest) -> ProbeAnswer {
        let Some(request) = self.prepared(probe, asked) else {
            tracing::warn!("semel: a probe was not sent: its target is too long with this key");
            return ProbeAnswer::CannotTell;
        };
        match self.upstream.send(request.map(Sent::new)).await {
            Ok(response) => answer(response, asked.response_bytes_max).await,
            Err(failure) => {
                tracing::warn!(kind = failure.word(), why = %failure, "semel: a probe got no answer");
                ProbeAnswer::CannotTell
            }
        }
    }

    /// The probe's request as one of the proxy's own.
    fn prepared(
        &self,
        probe: &UpstreamProbe,
        asked: &ProbeRequest,
    ) -> Option<Request<RequestBody<semel_listen::ClientBody>>> {
        let mut request = probe.request(asked)?;
        strip_request(request.headers_mut());
        if self.underscores == UnderscoresInHeaders::Drop {
            strip_underscores(request.headers_mut());
        }
        self.target.point(&mut request)?;
        Some(request)
    }
}

/// What the upstream's response says about the run.
async fn answer(response: Response<UpstreamBody>, bytes_max: usize) -> ProbeAnswer {
    let status = response.status();
    if status == StatusCode::NOT_FOUND {
        return ProbeAnswer::NotLanded;
    }
    if !status.is_success() {
        tracing::warn!(
            status = status.as_u16(),
            "semel: a probe was answered neither 2xx nor 404; the key is held"
        );
        return ProbeAnswer::CannotTell;
    }
    let (mut parts, body) = response.into_parts();
    strip(&mut parts.headers);
    let Some(body) = whole_or_too_long(body, bytes_max).await else {
        tracing::warn!("semel: the answer to a probe broke off; the key is held");
        return ProbeAnswer::CannotTell;
    };
    ProbeAnswer::Landed(Reply::from(Response::from_parts(parts, body)))
}

/// All of a body; or, of one that is too long to be kept, enough to see that. `None` if it broke off.
async fn whole_or_too_long(body: UpstreamBody, bytes_max: usize) -> Option<Bytes> {
    let mut body = pin!(body);
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            read.extend_from_slice(&data);
        }
        if read.len() > bytes_max {
            break;
        }
    }
    Some(read.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, key: &str) -> String {
        PathTemplate::parse(template).expect(template).filled(key, "/accounts/7/charges")
    }

    #[test]
    fn h57_a_key_is_one_value_wherever_it_stands_in_the_target() {
        assert_eq!(filled("/charges?key={key}", "pay-1"), "/charges?key=pay-1");
        assert_eq!(filled("/by-key/{key}/x", "../a?b&c=d#e %"), "/by-key/..%2Fa%3Fb%26c%3Dd%23e%20%25/x");
        assert_eq!(filled("{path}?key={key}", "k"), "/accounts/7/charges?key=k");
    }

    #[test]
    fn h57_a_target_that_cannot_ask_for_a_key_is_refused() {
        for (text, why) in [
            ("/charges", "without the key"),
            ("charges?key={key}", "not a path"),
            ("http://a/charges?key={key}", "not a path"),
            ("/charges#{key}", "not a path"),
            ("/charges ?key={key}", "not a path"),
            ("/charges?key={id}", "there are {key} and {path}"),
            ("/charges?key={key", "not closed"),
        ] {
            let error = PathTemplate::parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
