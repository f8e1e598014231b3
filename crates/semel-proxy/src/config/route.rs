//! `[[route]]`: paths with rules of their own.

use matchit::Router;
use semel_http::{Route, Rules};

use super::http_value;
use super::rules;
use semel_config::Table;
use semel_config::value::text;

/// Every route of the file, each on top of the rules that all have.
pub(super) fn routes(root: &mut Table<'_>, common: &Rules) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for mut table in root.tables("route") {
        if !table.has("path") {
            table.wrong("path", "is missing: which paths is this route for? Write path = \"/charges\"");
        }
        let path = table.read("path", text(http_value::path));
        let rules = rules::rules(&mut table, common.clone());
        if let Some(path) = path {
            let route = Route { path, rules };
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
