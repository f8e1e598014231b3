//! From a request to the rules that it is under.

use std::sync::Arc;

use http::Method;
use semel::{Error, ErrorKind, Result};

use crate::profile::Rules;
use crate::settings::{Route, Settings};

/// Paths with rules of their own, and the rules of all others.
pub(crate) struct Routes {
    named: Option<matchit::Router<Vec<Arc<Rules>>>>,
    others: Arc<Rules>,
}

impl Routes {
    /// No path has rules of its own.
    pub(crate) fn others(rules: Rules) -> Self {
        Self { named: None, others: Arc::new(rules) }
    }

    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        checked("the rules", &settings.profile.rules)?;
        let mut paths: Vec<(&str, Vec<Arc<Rules>>)> = Vec::new();
        for Route { path, rules } in &settings.routes {
            checked(path, rules)?;
            match paths.iter_mut().find(|(known, _)| known == path) {
                Some((_, several)) => several.push(Arc::new(rules.clone())),
                None => paths.push((path, vec![Arc::new(rules.clone())])),
            }
        }
        let mut named = matchit::Router::new();
        for (path, several) in &paths {
            only_once(path, several)?;
            named.insert(*path, several.clone()).map_err(|error| refused(path, &error.to_string()))?;
        }
        let named = (!paths.is_empty()).then_some(named);
        Ok(Self { named, others: Arc::new(settings.profile.rules.clone()) })
    }

    /// The rules of a request, if it is covered. A path that a route names is covered as the route says, and not by
    /// the rules of the others.
    pub(crate) fn rules(&self, method: &Method, path: &str) -> Option<&Arc<Rules>> {
        let named = self.named.as_ref().and_then(|named| named.at(path).ok());
        let candidates = named.map_or(std::slice::from_ref(&self.others), |found| found.value.as_slice());
        candidates.iter().find(|rules| rules.methods.contains(method))
    }
}

fn checked(path: &str, rules: &Rules) -> Result<()> {
    if let Some(method) = rules.methods.iter().find(|method| method.is_safe()) {
        return Err(refused(path, &format!("{method} changes nothing and is never covered; leave it out")));
    }
    if rules.lease.is_zero() || rules.lease > semel::LEASE_MAX {
        return Err(refused(path, "the lease must be more than nothing and at most a day"));
    }
    if rules.retention.is_zero() || rules.retention > semel::RETENTION_MAX {
        return Err(refused(path, "the retention must be more than nothing and at most a hundred years"));
    }
    if rules.attempts_max == Some(0) {
        return Err(refused(path, "attempts_max is 0; nothing could ever run"));
    }
    Ok(())
}

fn only_once(path: &str, several: &[Arc<Rules>]) -> Result<()> {
    let mut seen = Vec::new();
    for method in several.iter().flat_map(|rules| &rules.methods) {
        if seen.contains(&method) {
            return Err(refused(path, &format!("{method} has rules twice; join them")));
        }
        seen.push(method);
    }
    Ok(())
}

fn refused(path: &str, why: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("route {path}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::KeyPresence;

    fn route(path: &str, methods: &[Method]) -> Route {
        let rules = Rules { methods: methods.to_vec(), key: KeyPresence::Required, ..Rules::default() };
        Route { path: path.to_owned(), rules }
    }

    fn routes(routes: Vec<Route>) -> Result<Routes> {
        Routes::new(&Settings { routes, ..Settings::default() })
    }

    #[test]
    fn a_named_path_is_covered_as_its_route_says_and_others_by_the_defaults() {
        let routes =
            routes(vec![route("/charges", &[Method::POST]), route("/charges/{id}", &[Method::DELETE])])
                .unwrap();
        let presence = |method, path| routes.rules(&method, path).map(|rules| rules.key);
        assert_eq!(presence(Method::POST, "/charges"), Some(KeyPresence::Required));
        assert_eq!(presence(Method::PATCH, "/charges"), None);
        assert_eq!(presence(Method::DELETE, "/charges/7"), Some(KeyPresence::Required));
        assert_eq!(presence(Method::POST, "/refunds"), Some(KeyPresence::Optional));
        assert_eq!(presence(Method::GET, "/refunds"), None);
    }

    #[test]
    fn two_routes_of_one_path_share_it_by_method() {
        let both = routes(vec![route("/a", &[Method::POST]), route("/a", &[Method::PUT])]).unwrap();
        assert!(both.rules(&Method::POST, "/a").is_some() && both.rules(&Method::PUT, "/a").is_some());
        let twice = routes(vec![route("/a", &[Method::POST]), route("/a", &[Method::POST])]);
        assert!(twice.err().unwrap().to_string().contains("POST has rules twice"));
    }

    #[test]
    fn a_method_that_changes_nothing_is_never_covered() {
        let refused = routes(vec![route("/a", &[Method::GET])]).err().unwrap();
        assert!(refused.to_string().contains("GET"), "{refused}");
    }

    #[test]
    fn a_path_that_cannot_be_is_refused_by_name() {
        let refused = routes(vec![route("/a/{", &[Method::POST])]).err().unwrap();
        assert!(refused.to_string().starts_with("route /a/{"), "{refused}");
    }
}
