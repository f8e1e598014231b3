//! The identity of a covered request: its key, the caller that the key belongs to, the target that the client asked for,
//! and a label for people.

use http::uri::PathAndQuery;
use http::{Extensions, Uri, request};
use semel::record::{LABEL_BYTES_MAX, Record};
use semel::{Claim, Error, ErrorKind, Fingerprint, Key, OnOutage, Permit, RecordId};
use tokio::time::timeout;

use crate::caller::Caller;
use crate::fingerprint::fingerprint;
use crate::key::key_of;
use crate::layer::Inner;
use crate::problem::{Code, Problem};
use crate::profile::{KeyPresence, KeyScope, Rules};
use crate::scratch::with_text;

/// The target of a request as its client sent it: a request extension, for frameworks that strip a prefix of the path
/// before the layer sees it.
///
/// The path of this target is what routes match, what a key with `KeyScope::Route` is unique within, and what the
/// fingerprint covers. Otherwise `/a/pay` and `/b/pay` would be one request once `/a` and `/b` are stripped. Insert it
/// before the prefix is stripped. With axum and the feature `axum`, `axum::extract::OriginalUri` is read instead, and
/// nothing is to be inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalTarget(pub Uri);

/// Which identity keys have. For upgrades from 0.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyIdentity {
    /// By the target that the client sent, and by the host where [`Hosts`](crate::Hosts) says so.
    #[default]
    Full,
    /// As [`Full`](Self::Full) for new keys; a key that is stored under its identity of 0.1 keeps that. Costs a read of
    /// the store for each covered request. Switch to [`Full`](Self::Full) once the longest retention has passed.
    Upgrade,
    /// As in 0.1: by the target that the layer sees, without the host. Two services behind one proxy by host name share
    /// keys, and so do two routers that are nested under different prefixes.
    V0_1,
}

/// Who asks for what under which key.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) key: Key,
    pub(crate) caller: Caller,
    /// The key that the same request had in 0.1, if that has to be looked up first.
    pub(crate) key_of_0_1: Option<Key>,
}

/// The engine's key of a request, and the caller that it belongs to.
pub(crate) fn identify(inner: &Inner, rules: &Rules, parts: &request::Parts) -> Result<Identity, Problem> {
    let profile = &inner.settings.profile;
    let name = match key_of(&parts.headers, &profile.names, profile.key) {
        Ok(Some(name)) => name,
        Ok(None) if rules.key == KeyPresence::Required => {
            let detail = format!("Send a key of your own in `{}`: a UUID, for example.", profile.names.key);
            return Err(Problem::new(Code::KeyMissing, detail));
        }
        Ok(None) => return Err(Problem::new(Code::KeyMalformed, "The key's header has no value.")),
        Err(malformed) => return Err(Problem::new(Code::KeyMalformed, malformed.to_string())),
    };
    let caller = inner.principal.identify(parts).map_err(|unknown| unknown.problem())?;
    let target = client_target(&parts.extensions, &parts.uri);
    let scoped = |target: &Uri, host: Option<&str>| {
        let scope = inner.settings.scope.iter().map(String::as_str).chain(host).chain([caller.as_str()]);
        let key =
            with_operation(rules.scope, parts, target, |operation| Key::scoped(scope, operation, &name));
        key.map_err(|error| Problem::new(Code::KeyMalformed, error.to_string()))
    };
    let full = || scoped(target, inner.settings.hosts.scope_part(target, &parts.headers).as_deref());
    let v0_1 = || scoped(&parts.uri, None);
    let (key, key_of_0_1) = match inner.settings.key_identity {
        KeyIdentity::Full => (full()?, None),
        KeyIdentity::Upgrade => (full()?, Some(v0_1()?)),
        KeyIdentity::V0_1 => (v0_1()?, None),
    };
    let is_as_before = key_of_0_1.as_ref() == Some(&key) && *target == parts.uri;
    Ok(Identity { key, caller, key_of_0_1: key_of_0_1.filter(|_| !is_as_before) })
}

/// Whether the same layer is around this one a second time and has claimed the key: the run is that one's, and this one would
/// find it busy.
pub(crate) fn claimed_outside(inner: &Inner, rules: &Rules, parts: &request::Parts) -> bool {
    let Some(permit) = parts.extensions.get::<Permit>() else { return false };
    identify(inner, rules, parts).is_ok_and(|identity| {
        *permit.key() == identity.key || identity.key_of_0_1.as_ref() == Some(permit.key())
    })
}

/// The target that the client sent, also behind a framework that strips a prefix of its path.
pub(crate) fn client_target<'a>(extensions: &'a Extensions, uri: &'a Uri) -> &'a Uri {
    if let Some(OriginalTarget(target)) = extensions.get() {
        return target;
    }
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(target)) = extensions.get() {
        return target;
    }
    uri
}

/// The key and the fingerprint that a request is claimed with. Only an upgrade asks the store.
pub(crate) async fn claimed_as(
    inner: &Inner,
    rules: &Rules,
    identity: &Identity,
    parts: &request::Parts,
    body: &[u8],
) -> semel::Result<(Key, Fingerprint)> {
    let target = client_target(&parts.extensions, &parts.uri);
    let print = |uri: &Uri| fingerprint(&parts.method, uri, &parts.headers, body, &rules.fields_left_out);
    if inner.settings.key_identity == KeyIdentity::V0_1 {
        return Ok((identity.key.clone(), print(&parts.uri)));
    }
    let Some(earlier) = &identity.key_of_0_1 else { return Ok((identity.key.clone(), print(target))) };
    let found = stored(inner, rules, earlier).await?;
    let is_earlier = found.is_some_and(|record| {
        // Under one key, only the fingerprint says which version stored it.
        *earlier != identity.key || record.fingerprint == Some(print(&parts.uri))
    });
    Ok(if is_earlier { (earlier.clone(), print(&parts.uri)) } else { (identity.key.clone(), print(target)) })
}

/// The record of a key. While the store is away, rules that run without protection take it for absent.
async fn stored(inner: &Inner, rules: &Rules, key: &Key) -> semel::Result<Option<Record>> {
    let found = timeout(inner.settings.store_timeout, inner.semel.get(key)).await.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Unavailable, "the store did not answer in time; ask again"))
    });
    match (found, rules.on_outage) {
        (Err(error), OnOutage::Open) if error.kind() == ErrorKind::Unavailable => Ok(None),
        (found, _) => found,
    }
}

/// What a key is unique within, beside its scope. A method, path and query that are too long are digested.
fn with_operation<T>(
    scope: KeyScope,
    parts: &request::Parts,
    target: &Uri,
    read: impl FnOnce(&str) -> T,
) -> T {
    match scope {
        KeyScope::Caller => return read("http"),
        KeyScope::Route => {}
    }
    let target = target.path_and_query().map_or("/", PathAndQuery::as_str);
    with_text(format_args!("{} {target}", parts.method), |operation| {
        if operation.len() <= semel::PART_BYTES_MAX {
            return read(operation);
        }
        let digest = Fingerprint::of_parts([operation.as_bytes()]);
        read(&format!("{} digest:{}", parts.method, RecordId::from_bytes(*digest.as_bytes())))
    })
}

/// The claim with its label: method and path, in words for people, cut to what a label may have. Without the query, which may hold secrets.
pub(crate) fn labelled(claim: Claim, parts: &request::Parts) -> Claim {
    let path = client_target(&parts.extensions, &parts.uri).path();
    with_text(format_args!("{} {path}", parts.method), |label| {
        label.truncate(label.floor_char_boundary(LABEL_BYTES_MAX));
        claim.label(label)
    })
}
